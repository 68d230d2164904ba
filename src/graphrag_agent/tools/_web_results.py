"""What a search of the web finds, and the port of who searches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class WebResult:
    """A page that a search found, as the provider describes it."""

    title: str
    url: str
    snippet: str


class SearchProvider(Protocol):
    """Who searches the web."""

    async def search(self, query: str, count: int) -> Sequence[WebResult]:
        """About `count` pages or more, best first; they are checked and cut by the caller. Raises ToolError."""
        ...
