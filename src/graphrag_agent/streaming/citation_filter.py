"""An answer's text while it is written, as it will read when its citations are resolved."""

from __future__ import annotations

from collections.abc import Collection

from graphrag_agent.citations.parsing import Marker, MarkerStream, Piece

_BLANKS = " \t"


class CitationFilter:
    """Gives, piece by piece, what `resolve_citations` makes of the whole: real ids in one form, unknown marks left out.

    Half a mark is held back until it is decided, and so are blanks, which go where an unknown mark follows them.
    """

    def __init__(self, known: Collection[str]) -> None:
        self._known = known
        self._pieces = MarkerStream()
        self._line = ""
        """The last line so far; it decides how the next mark is written."""
        self._given = 0
        """How much of it was given out."""
        self._mark: tuple[int, int] | None = None
        """Where the last mark stands on it."""

    def feed(self, text: str) -> str:
        """What of the text so far is certain."""
        return "".join([self._take(piece) for piece in self._pieces.feed(text)])

    def close(self) -> str:
        """The rest, with nothing to follow it."""
        shown = "".join([self._take(piece) for piece in self._pieces.close()])
        rest, self._given = self._line[self._given :], len(self._line)
        return shown + rest

    def _take(self, piece: Piece) -> str:
        if not isinstance(piece, Marker):
            return self._add(f" {piece}" if self._would_make_link(piece) else piece)
        if known := [id_ for id_ in piece.ids if id_ in self._known]:
            is_label = self._line.endswith("]") and not self._is_after_mark
            mark = f"[{', '.join(known)}]"
            start = len(self._line) + is_label
            shown = self._add(f" {mark}" if is_label else mark)
            self._mark = (start, len(self._line))
            return shown
        if piece.is_bare:
            return self._add(piece.raw)
        self._line = self._line.rstrip(_BLANKS)
        return ""

    @property
    def _is_after_mark(self) -> bool:
        return self._mark is not None and self._mark[1] == len(self._line)

    def _would_make_link(self, text: str) -> bool:
        """Whether the text would make a link of the mark that it follows directly."""
        if self._mark is None or not self._is_after_mark:
            return False
        return text.startswith("(") or (text.startswith(":") and not self._line[: self._mark[0]].strip())

    def _add(self, text: str) -> str:
        self._line += text
        before, newline, last = self._line.rpartition("\n")
        ready = f"{before}{newline}"[self._given :]
        if newline:
            self._line, self._given, self._mark = last, 0, None
        settled = len(self._line.rstrip(_BLANKS))
        if settled > self._given:
            ready += self._line[self._given : settled]
            self._given = settled
        return ready
