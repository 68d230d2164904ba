"""GET of one public page: bounded in time, size and redirects, and without anything that tells who asks.

A request goes to the numeric address that was checked, with the name in `Host` and in TLS. So a name server that
answers differently the second time changes nothing. httpx-secure checks the address again where it is connected; names
are not left to it, as it would connect to a host before it checks where that is.
"""

from __future__ import annotations

import asyncio
import re
import ssl
import zlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

from graphrag_agent.errors import MissingExtraError, ToolError, ToolFailedError
from graphrag_agent.retrieval.tls import tls_context
from graphrag_agent.tools._url_guard import IPAddress, WebAddress, check_url
from graphrag_agent.tools._web_network import Network, checked_addresses

if TYPE_CHECKING:
    import httpx

AGENT = "graphrag-agent"
"""Our name in requests and in robots.txt."""
MAX_REDIRECTS = 5
MAX_ADDRESSES = 3
"""Of one name, tried one after another."""
CONNECT_SECONDS = 5.0
_HEADERS = {
    "user-agent": f"Mozilla/5.0 (compatible; {AGENT})",
    "accept": "text/html,application/xhtml+xml,application/pdf,text/*;q=0.9,application/json;q=0.9",
    "accept-encoding": "gzip",
    "connection": "close",
}
_CHARSET = re.compile(r"""charset\s*=\s*["']?([\w.:+-]{1,40})""", re.IGNORECASE)
_GZIP = zlib.MAX_WBITS | 16
_GZIP_BEGINS = b"\x1f"
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_MAY_COME_LATER = frozenset({408, 425, 429})


@dataclass(frozen=True, slots=True)
class Download:
    """What a server answered."""

    address: WebAddress
    """Where it came from, after redirects."""
    status: int
    media_type: str
    """In small letters, without parameters; empty where the server gives none."""
    charset: str
    data: bytes
    """Decompressed, at most as much as was asked for."""
    is_cut: bool
    """There was more."""


@dataclass(frozen=True, slots=True)
class _Redirect:
    location: str


class WebClient:
    """Fetches from one network."""

    def __init__(self, network: Network) -> None:
        if find_spec("httpx_secure") is None:
            raise MissingExtraError("fetching web pages", "tools")
        self.network = network

    def check(self, url: str, *, base: WebAddress | None = None) -> WebAddress:
        """The URL's parts, as this network allows them. Raises ToolArgumentError."""
        return check_url(url, base=base, ports=self.network.ports, admits=self.network.admits)

    async def get(self, address: WebAddress, *, max_bytes: int) -> Download | WebAddress:
        """The answer whatever its status is, or the address that it redirects to. Raises ToolError."""
        import httpx

        tls = await asyncio.to_thread(_load)
        failure: Exception | None = None
        for ip in (await checked_addresses(self.network, address))[:MAX_ADDRESSES]:
            try:
                answer = await self._get(address, ip, tls, max_bytes)
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                failure = error
                continue
            except httpx.HTTPError as error:
                raise ToolFailedError(f"{_broke(address)} ({type(error).__name__})", retryable=True) from error
            return self._followed(address, answer.location) if isinstance(answer, _Redirect) else answer
        raise ToolFailedError(
            f"{address.origin} can't be connected ({type(failure).__name__}); use another page"
        ) from failure

    async def _get(
        self, address: WebAddress, ip: IPAddress, tls: ssl.SSLContext, max_bytes: int
    ) -> Download | _Redirect:
        import httpx
        from httpx_secure import httpx_ssrf_protection

        # a client for one request: nothing that a server sets can come back to it or to another
        client = httpx_ssrf_protection(
            httpx.AsyncClient(
                verify=tls,
                trust_env=False,
                timeout=httpx.Timeout(None, connect=CONNECT_SECONDS),
                event_hooks={"response": [_hide_location]},
            ),
            check_globally_reachable=False,  # our own check is stricter, and the same for every Python
            custom_validator=lambda _, connected, port: self.network.admits(connected) and port in self.network.ports,
        )
        host = f"[{ip}]" if ip.version == 6 else str(ip)
        request = client.build_request(
            "GET",
            f"{address.scheme}://{host}:{address.port}{address.target}",
            headers={"host": address.netloc, **_HEADERS},
            extensions={} if address.literal else {"sni_hostname": address.host},
        )
        async with client:
            response = await client.send(request, stream=True)
            try:
                if response.status_code in _REDIRECTS and (location := response.extensions.get("location")):
                    return _Redirect(location)
                return await _download(address, response, max_bytes)
            finally:
                await response.aclose()

    def _followed(self, address: WebAddress, location: str) -> WebAddress:
        try:
            return self.check(location, base=address)
        except ToolError as error:
            raise ToolFailedError(f"{address.url} redirects elsewhere; {error}") from error


async def follow(
    client: WebClient, address: WebAddress, *, max_bytes: int, allowed: Callable[[WebAddress], Awaitable[None]]
) -> Download:
    """The answer at the end of at most `MAX_REDIRECTS` redirects; `allowed` is asked before each request.

    Raises ToolError.
    """
    seen: set[str] = set()
    for _ in range(MAX_REDIRECTS + 1):
        seen.add(address.url)
        await allowed(address)
        answer = await client.get(address, max_bytes=max_bytes)
        if isinstance(answer, Download):
            return answer
        if answer.url in seen:
            raise ToolFailedError(f"{answer.url} redirects in a circle (it may want cookies); use another page")
        address = answer
    raise ToolFailedError(f"more than {MAX_REDIRECTS} redirects, the last to {address.url}; use another page")


def check_status(download: Download) -> None:
    """Raises ToolFailedError unless the server gave the page."""
    status = download.status
    if not 200 <= status < 300:
        retryable = status in _MAY_COME_LATER or status >= 500
        remedy = "it may answer later" if retryable else "check the URL or use another page"
        raise ToolFailedError(f"{download.address.origin} answered with status {status}; {remedy}", retryable=retryable)


async def _hide_location(response: httpx.Response) -> None:
    """Out of httpx's sight, which would read where it leads, and fail, before we check it."""
    response.extensions["location"] = response.headers.pop("location", "")


async def _download(address: WebAddress, response: httpx.Response, max_bytes: int) -> Download:
    coding = response.headers.get("content-encoding", "").strip().lower()
    if coding not in ("", "identity", "gzip", "x-gzip"):
        raise ToolFailedError(f"{_broke(address)} (encoded as {coding[:40]!r}, which was not asked for)")
    body = _Body(max_bytes, is_gzip="gzip" in coding)
    try:
        async for raw in response.aiter_raw():
            body.add(raw)
            if body.is_cut:
                break
    except zlib.error as error:
        raise ToolFailedError(f"{_broke(address)} (its gzip data is damaged)") from error
    media_type, _, parameters = response.headers.get("content-type", "").partition(";")
    charset = _CHARSET.search(parameters)
    return Download(
        address=address,
        status=response.status_code,
        media_type=media_type.strip().lower(),
        charset=charset[1] if charset else "",
        data=bytes(body.data),
        is_cut=body.is_cut,
    )


class _Body:
    """Bytes as they come, decompressed no further than to the limit."""

    def __init__(self, max_bytes: int, *, is_gzip: bool) -> None:
        self.data = bytearray()
        self.is_cut = False
        self._max_bytes = max_bytes
        self._raw_bytes = 0
        self._is_gzip = is_gzip
        self._has_ended = False
        """A member of the gzip file is whole, and no other one has begun."""
        self._gzip = zlib.decompressobj(_GZIP)

    def add(self, raw: bytes) -> None:
        self._raw_bytes += len(raw)
        while raw and not self.is_cut:
            raw = self._add_some(raw)
        # gzip can say nothing at great length
        self.is_cut = self.is_cut or self._raw_bytes > self._max_bytes

    def _add_some(self, raw: bytes) -> bytes:
        room = self._max_bytes - len(self.data)
        if not self._is_gzip:
            self.data += raw[:room]
            self.is_cut = len(raw) > room
            return b""
        if self._has_ended and not raw.startswith(_GZIP_BEGINS):
            return b""  # some servers pad what they compressed, and browsers pass over that
        self._has_ended = False
        piece = self._gzip.decompress(raw, room + 1)
        self.data += piece[:room]
        self.is_cut = len(piece) > room
        if not self._gzip.eof:
            return self._gzip.unconsumed_tail
        self._has_ended = True
        rest, self._gzip = self._gzip.unused_data, zlib.decompressobj(_GZIP)  # a file of several gzip members
        return rest


def _broke(address: WebAddress) -> str:
    return f"{address.origin} gave no whole answer; try another page"


def _load() -> ssl.SSLContext:
    """All certificates, and what the first request imports: in a thread, as both take long."""
    import httpx_secure  # noqa: F401

    return tls_context()
