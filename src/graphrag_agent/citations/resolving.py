"""From the ids in an answer's text to the evidence of the turn.

Ids that stand for nothing are taken out of the text and reported; every other bracket is left alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from graphrag_agent.citations.parsing import Marker, parse_markers
from graphrag_agent.citations.values import Citation, Evidence


@dataclass(frozen=True, slots=True)
class PlacedMarker:
    """A mark and where it stands in the text, in characters."""

    start: int
    end: int
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CitedText:
    """An answer with its ids resolved."""

    text: str
    citations: tuple[Citation, ...]
    """In the order of their first mention, each once; those of one origin have one number."""
    unknown: tuple[str, ...]
    """Ids that were taken out because they stand for no evidence of this turn."""
    markers: tuple[PlacedMarker, ...] = ()


def resolve_citations(text: str, evidence: Mapping[str, Evidence]) -> CitedText:
    """The text with only real ids left in it, all in the form `[k3f2a, m7xw2]`, and what they point to."""
    out = ""
    markers: list[PlacedMarker] = []
    unknown: dict[str, None] = {}
    for piece in parse_markers(text):
        if not isinstance(piece, Marker):
            parted = _would_make_link(piece, out, markers) or _would_make_fence(piece, out)
            out += f" {piece}" if parted else piece
            continue
        known = tuple(id_ for id_ in piece.ids if id_ in evidence)
        if known:
            out = f"{out} " if _would_be_label(out, markers) else out
            start = len(out)
            out += f"[{', '.join(known)}]"
            markers.append(PlacedMarker(start, len(out), known))
        elif piece.is_bare:
            out += piece.raw
            continue
        else:
            out = out.rstrip(" \t")
        unknown.update(dict.fromkeys(id_ for id_ in piece.ids if id_ not in evidence))
    ids = dict.fromkeys(id_ for marker in markers for id_ in marker.ids)
    return CitedText(out, _numbered([evidence[id_] for id_ in ids]), tuple(unknown), tuple(markers))


def _would_make_link(after: str, before: str, markers: list[PlacedMarker]) -> bool:
    """Whether the text would make a link of the mark that it follows directly."""
    if not (markers and markers[-1].end == len(before)):
        return False
    line = before[: markers[-1].start].rpartition("\n")[2]
    return after.startswith("(") or (after.startswith(":") and not line.strip())


def _would_make_fence(after: str, before: str) -> bool:
    """Whether backticks that an id stood between would become one mark."""
    return after.startswith("`") and before.endswith("`")


def _would_be_label(before: str, markers: list[PlacedMarker]) -> bool:
    """Whether a mark behind the text would be the label of a link."""
    return before.endswith("]") and not (markers and markers[-1].end == len(before))


def _numbered(cited: list[Evidence]) -> tuple[Citation, ...]:
    numbers: dict[str, int] = {}
    return tuple(Citation.of(item, number=numbers.setdefault(item.origin, len(numbers) + 1)) for item in cited)
