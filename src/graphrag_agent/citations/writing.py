"""An answer's text as it reads once its citations are resolved, piece by piece: the one way, streamed or not."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from graphrag_agent.citations.parsing import Marker, Piece

_BLANKS = " \t"


@dataclass(frozen=True, slots=True)
class PlacedMarker:
    """A mark and where it stands in the text, in characters."""

    start: int
    end: int
    ids: tuple[str, ...]


class CitedTextWriter:
    """Writes real ids in one form and leaves unknown marks out, without making a link or a fence of what is around.

    Blanks at the end are held back: they go where an unknown mark follows them.
    """

    def __init__(self, known: Collection[str]) -> None:
        self.markers: list[PlacedMarker] = []
        self.unknown: dict[str, None] = {}
        """Ids that stand for nothing, in order."""
        self._known = known
        self._line = ""
        """The last line so far; it decides how the next piece is written."""
        self._line_start = 0
        """Where it begins in the text."""
        self._given = 0
        """How much of it was given out."""
        self._is_after_unknown = False

    def write(self, piece: Piece) -> str:
        """What of the text is certain now and wasn't before."""
        if isinstance(piece, Marker):
            return self._mark(piece)
        parted = self._would_make_link(piece) or self._would_make_fence(piece)
        return self._add(f" {piece}" if parted else piece)

    def close(self) -> str:
        """The rest, with nothing to follow it."""
        rest, self._given = self._line[self._given :], len(self._line)
        return rest

    def _mark(self, marker: Marker) -> str:
        known = tuple(id_ for id_ in marker.ids if id_ in self._known)
        if not known and marker.is_bare:
            return self._add(marker.raw)
        self.unknown.update(dict.fromkeys(id_ for id_ in marker.ids if id_ not in known))
        if not known:
            self._line = self._line.rstrip(_BLANKS)
            self._is_after_unknown = True
            return ""
        would_be_label = self._line.endswith("]") and not self._is_after_mark
        start = self._end + would_be_label
        mark = f"[{', '.join(known)}]"
        shown = self._add(f" {mark}" if would_be_label else mark)
        self.markers.append(PlacedMarker(start, self._end, known))
        return shown

    @property
    def _end(self) -> int:
        return self._line_start + len(self._line)

    @property
    def _is_after_mark(self) -> bool:
        return bool(self.markers) and self.markers[-1].end == self._end

    def _would_make_link(self, text: str) -> bool:
        """Whether the text would make a link of the mark that it follows directly."""
        if not self._is_after_mark:
            return False
        before = self._line[: self.markers[-1].start - self._line_start]
        return text.startswith("(") or (text.startswith(":") and not before.strip())

    def _would_make_fence(self, text: str) -> bool:
        """Whether backticks that a mark stood between would become one run."""
        return self._is_after_unknown and text.startswith("`") and self._line.endswith("`")

    def _add(self, text: str) -> str:
        self._is_after_unknown = False
        self._line += text
        before, newline, last = self._line.rpartition("\n")
        ready = f"{before}{newline}"[self._given :]
        if newline:
            self._line_start += len(self._line) - len(last)
            self._line, self._given = last, 0
        settled = len(self._line.rstrip(_BLANKS))
        if settled > self._given:
            ready += self._line[self._given : settled]
            self._given = settled
        return ready
