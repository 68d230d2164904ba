"""What a site's robots.txt lets a program fetch (RFC 9309)."""

from __future__ import annotations

import re
import string
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from graphrag_agent.errors import ToolFailedError
from graphrag_agent.tools._url_guard import WebAddress
from graphrag_agent.tools._web_client import AGENT, WebClient, follow

MAX_BYTES = 500 * 1024
"""What RFC 9309 demands that a crawler reads; the rest doesn't count."""
KEPT_SITES = 256
KEPT_SECONDS = 3600.0
_MAX_RULES = 2000
_MAX_PATTERN = 500
_RESERVED = "%/:?#[]@!$&'()*+,;="
_UNRESERVED = frozenset(string.ascii_letters + string.digits + "-._~")
"""RFC 3986: escaped or not, these mean the same."""
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")


@dataclass(frozen=True, slots=True)
class Rules:
    """Patterns of paths; the longest one that fits decides, and an allowing one of two equals."""

    rules: Sequence[tuple[str, bool]] = ()

    def allow(self, target: str) -> bool:
        """Whether the path with its query may be fetched."""
        target = _encoded(target)
        fitting = [(len(pattern), allows) for pattern, allows in self.rules if _fits(pattern, target)]
        return max(fitting, default=(0, True))[1]


def parse_robots(text: str) -> Rules:
    """The rules of the groups that name our agent, else of those for all."""
    found: dict[str, list[tuple[str, bool]]] = {}
    names: set[str] = set()  # of those two, the ones that the group is for
    is_naming = False
    for line in text.splitlines():
        key, _, value = line.partition("#")[0].partition(":")
        key, value = key.strip().lower(), value.strip()
        if key == "user-agent":
            names = names if is_naming else set()
            is_naming = True
            if (name := value.lower()) in (AGENT, "*"):
                names.add(name)
                found.setdefault(name, [])
        elif key in ("allow", "disallow"):
            is_naming = False
            for name in names if value else ():  # an empty pattern fits nothing
                if len(found[name]) < _MAX_RULES:
                    found[name].append((_encoded(value[:_MAX_PATTERN]), key == "allow"))
    return Rules(tuple(found.get(AGENT, found.get("*", ()))))


class RobotsCache:
    """The rules of sites, fetched as pages are, and kept for an hour."""

    def __init__(self, client: WebClient, now: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._now = now
        self._kept: OrderedDict[str, tuple[float, Rules]] = OrderedDict()

    async def check(self, address: WebAddress) -> None:
        """Raises ToolError where the site doesn't let the page be fetched, or can't be asked."""
        rules = self._known(address.origin)
        if rules is None:
            rules = await self._fetch(address)
            self._kept[address.origin] = (self._now(), rules)
            self._kept.move_to_end(address.origin)
            while len(self._kept) > KEPT_SITES:
                self._kept.popitem(last=False)
        if not rules.allow(address.target):
            raise ToolFailedError(
                f"{address.origin} forbids programs to fetch this page (robots.txt); use another page"
            )

    def _known(self, origin: str) -> Rules | None:
        since, rules = self._kept.get(origin, (0.0, None))
        return rules if rules is not None and self._now() - since < KEPT_SECONDS else None

    async def _fetch(self, address: WebAddress) -> Rules:
        """The site's rules; a site that can't be asked is not fetched from, and is asked again the next time."""
        file = self._client.check("/robots.txt", base=address)
        found = await follow(self._client, file, max_bytes=MAX_BYTES, allowed=_anything)
        if found.status == 429 or found.status >= 500:
            raise ToolFailedError(
                f"{address.origin} answered with status {found.status} when asked for its robots.txt, so its pages "
                "must wait; use another page",
                retryable=True,
            )
        if not 200 <= found.status < 300:
            return Rules()  # there is no robots.txt
        return parse_robots(found.data.decode("utf-8-sig", "replace"))


def _encoded(path: str) -> str:
    """The path in the one spelling in which patterns and targets are compared."""
    return _ESCAPE.sub(_respelled, quote(path, safe=_RESERVED, errors="replace"))


def _respelled(escape: re.Match[str]) -> str:
    character = chr(int(escape[1], 16))
    return character if character in _UNRESERVED else escape[0].upper()


async def _anything(_: WebAddress) -> None:
    return None


def _fits(pattern: str, target: str) -> bool:
    """Whether the pattern, in which `*` is any text and `$` at its end the end, fits the beginning of the target.

    Each piece is looked for from the left, so that no pattern of a stranger can make it slow.
    """
    is_whole = pattern.endswith("$")
    first, *rest = re.split(r"\*+", pattern.removesuffix("$"))
    if not target.startswith(first):
        return False
    at = len(first)
    for number, piece in enumerate(rest):
        if is_whole and number == len(rest) - 1:
            return target.endswith(piece) and len(target) - len(piece) >= at
        found = target.find(piece, at)
        if found < 0:
            return False
        at = found + len(piece)
    return at == len(target) or not is_whole
