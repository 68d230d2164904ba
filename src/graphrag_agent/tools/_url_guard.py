"""Which URLs of the web may be asked: what is refused before anything is looked up or connected.

One parser reads a URL, and the request is made anew from the parts that were checked, so no second reading of the
same text can lead elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

from graphrag_agent.errors import ToolArgumentError

IPAddress = IPv4Address | IPv6Address
WEB_PORTS = frozenset({80, 443})
MAX_URL_CHARACTERS = 2000
"""What servers and search engines commonly take."""

# the special-purpose registries of IANA; `is_global` of older Pythons lacks some (192.0.0.192, Oracle's metadata)
_CLOSED_V4 = tuple(
    IPv4Network(text)
    for text in (
        *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24"),
        *("192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24"),
        *("224.0.0.0/4", "240.0.0.0/4"),
        "168.63.129.16/32",  # a public address that inside Azure is the machine's own host
    )
)
_GLOBAL_UNICAST = IPv6Network("2000::/3")
"""All that is given out; outside lie loopback, private, link-local and multicast addresses and every embedded IPv4."""
_CLOSED_V6 = tuple(
    IPv6Network(text)
    for text in (
        "2001::/23",  # Teredo, which embeds IPv4, and protocols that are no hosts
        "2001:db8::/32",
        "2002::/16",  # 6to4, which embeds IPv4
        "3fff::/20",
    )
)
_NAT64 = IPv6Network("64:ff9b::/96")
"""How networks without IPv4 reach it: the address is the IPv4 address in the last four bytes."""
_PRIVATE_SUFFIXES = ("localhost", "local", "internal", "home.arpa", "lan", "onion")
"""Names that no public name server answers for; asking would only tell others what is looked for."""
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"\d+|0x[0-9a-f]*")
_CONTROL_OR_BACKSLASH = re.compile(r"[\x00-\x1f\x7f\\]")
_SHOWN_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class WebAddress:
    """A URL of the web in parts, each of them checked."""

    scheme: str
    host: str
    """In small ASCII letters without a final dot; an IPv6 address without brackets."""
    port: int
    target: str
    """Path and query, percent-encoded."""

    @property
    def netloc(self) -> str:
        """Host and port as a request names them; the scheme's own port is left out."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _own_port(self.scheme) else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        """Scheme, host and port."""
        return f"{self.scheme}://{self.netloc}"

    @property
    def url(self) -> str:
        """The whole URL, without fragment."""
        return self.origin + self.target

    @property
    def literal(self) -> IPAddress | None:
        """The address, where the host is one."""
        try:
            return ip_address(self.host)
        except ValueError:
            return None


def is_public(address: IPAddress) -> bool:
    """Whether the address belongs to the public internet, and so does an IPv4 address within it."""
    if isinstance(address, IPv4Address):
        return address.is_global and not any(address in closed for closed in _CLOSED_V4)
    if address in _NAT64:
        return is_public(IPv4Address(address.packed[-4:]))
    return address.is_global and address in _GLOBAL_UNICAST and not any(address in closed for closed in _CLOSED_V6)


def check_url(
    text: str,
    *,
    base: WebAddress | None = None,
    ports: Collection[int] | None = WEB_PORTS,
    admits: Callable[[IPAddress], bool] = is_public,
) -> WebAddress:
    """The URL's parts; with `base` it may be relative. None for `ports` means any.

    Raises ToolArgumentError that says why the URL is refused. A name's addresses are not known here.
    """
    import httpx

    text = text.strip()
    if len(text) > MAX_URL_CHARACTERS:
        raise _refused(text, f"it is longer than {MAX_URL_CHARACTERS} characters")
    if _CONTROL_OR_BACKSLASH.search(text):
        raise _refused(text, "it has a backslash or a control character, which programs read differently")
    try:
        url = httpx.URL(text) if base is None else httpx.URL(base.url).join(text)
        host, port = url.raw_host.decode("ascii"), url.port
    except (httpx.InvalidURL, ValueError, TypeError) as error:
        raise _refused(text, "it can't be read; write it in full, such as https://example.com/page") from error
    if url.scheme not in ("http", "https"):
        raise _refused(text, "only http:// and https:// can be fetched; write the URL in full")
    if url.userinfo:
        raise _refused(text, "it has a user name or password in front of the host; leave them out")
    port = _own_port(url.scheme) if port is None else port
    if ports is not None and port not in ports:
        raise _refused(text, f"port {port} is not open to this tool, only {', '.join(map(str, sorted(ports)))}")
    address = WebAddress(url.scheme, _checked_host(text, host), port, url.raw_path.decode("ascii"))
    if address.literal is not None and not admits(address.literal):
        raise _refused(text, "its host is a private or reserved address; only public hosts can be fetched")
    return address


def _shown(text: str) -> str:
    """As much of the text as a message shows."""
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…"


def _checked_host(text: str, host: str) -> str:
    if ":" in host and "%" not in host:
        return str(IPv6Address(host))  # the parser has read it as one
    host = host.lower().removesuffix(".")
    labels = host.split(".")
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise _refused(text, f"{_shown(host)!r} is no name of a public host")
    if _NUMBER.fullmatch(labels[-1]):
        try:
            return str(IPv4Address(host))
        except ValueError:
            raise _refused(text, "an address must be written as four decimal numbers, such as 192.0.2.1") from None
    if len(labels) == 1 or any(host == suffix or host.endswith(f".{suffix}") for suffix in _PRIVATE_SUFFIXES):
        raise _refused(text, f"{host!r} is a name inside a private network; only public hosts can be fetched")
    return host


def _own_port(scheme: str) -> int:
    return 443 if scheme == "https" else 80


def _refused(text: str, reason: str) -> ToolArgumentError:
    return ToolArgumentError(f"url={_shown(text)!r} is refused: {reason}")
