"""From the ids in an answer's text to the evidence of the turn.

Ids that stand for nothing are taken out of the text and reported; every other bracket is left alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from graphrag_agent.citations.parsing import parse_markers
from graphrag_agent.citations.values import Citation, Evidence
from graphrag_agent.citations.writing import CitedTextWriter, PlacedMarker


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
    writer = CitedTextWriter(evidence.keys())
    resolved = "".join([*map(writer.write, parse_markers(text)), writer.close()])
    ids = dict.fromkeys(id_ for marker in writer.markers for id_ in marker.ids)
    citations = _numbered([evidence[id_] for id_ in ids])
    return CitedText(resolved, citations, tuple(writer.unknown), tuple(writer.markers))


def _numbered(cited: list[Evidence]) -> tuple[Citation, ...]:
    numbers: dict[str, int] = {}
    return tuple(Citation.of(item, number=numbers.setdefault(item.origin, len(numbers) + 1)) for item in cited)
