"""An answer's text while it is written, as it will read when its citations are resolved."""

from __future__ import annotations

from collections.abc import Collection

from graphrag_agent.citations import CitedTextWriter
from graphrag_agent.citations.parsing import MarkerStream


class CitationFilter:
    """Gives, piece by piece, what `resolve_citations` makes of the whole.

    Half a mark is held back until it is decided.
    """

    def __init__(self, known: Collection[str]) -> None:
        self._pieces = MarkerStream()
        self._writer = CitedTextWriter(known)

    def feed(self, text: str) -> str:
        """What of the text so far is certain."""
        return "".join(map(self._writer.write, self._pieces.feed(text)))

    def close(self) -> str:
        """The rest, with nothing to follow it."""
        return "".join(map(self._writer.write, self._pieces.close())) + self._writer.close()
