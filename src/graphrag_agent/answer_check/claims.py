"""What an answer says, cut into the stretches that a mark stands for."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from graphrag_agent.citations import CitedText, PlacedMarker
from graphrag_agent.models.sentences import split_sentences


@dataclass(frozen=True, slots=True)
class Claim:
    """A cited sentence, or the part of one up to its mark."""

    text: str
    """Without marks."""
    start: int
    """In the answer's text, marks included."""
    end: int
    ids: tuple[str, ...]


@dataclass(slots=True)
class _Stretch:
    """In the text without marks."""

    start: int
    end: int
    marks: list[PlacedMarker]
    is_rest: bool = False
    """Whether it is what follows a mark in the same sentence."""


def find_claims(cited: CitedText) -> list[Claim]:
    """The cited stretches, in order. A mark stands for the sentence it is in, or for the one before it on its line."""
    plain, places = _without_marks(cited.text, cited.markers)
    stretches = [_Stretch(sentence.start, sentence.end, []) for sentence in split_sentences(plain)]
    for marker, at in zip(cited.markers, places, strict=True):
        _attach(stretches, marker, at, plain)
    claims = []
    for stretch in _without_rests(stretches):
        if marks := stretch.marks:
            start, end = (_in_answer(at, cited.markers, places) for at in (stretch.start, stretch.end))
            ids = tuple(dict.fromkeys(id_ for marker in marks for id_ in marker.ids))
            text = plain[stretch.start : stretch.end].strip()
            claims.append(Claim(text, min(start, marks[0].start), max(end, marks[-1].end), ids))
    return claims


def _without_marks(text: str, markers: Sequence[PlacedMarker]) -> tuple[str, list[int]]:
    """The text without its marks, and where in it each stood."""
    plain, places, at = "", [], 0
    for marker in markers:
        plain += text[at : marker.start]
        places.append(len(plain))
        at = marker.end
    return plain + text[at:], places


def _attach(stretches: list[_Stretch], marker: PlacedMarker, at: int, plain: str) -> None:
    following = bisect_left(stretches, at, key=lambda stretch: stretch.start)
    before = stretches[following - 1] if following else None
    own = before if before is not None and at < before.end else None
    if (
        own is not None
        and plain[at : own.end].strip(" .!?…。！？*_|\"'”’»)")
        and not any(set(mark.ids) & set(marker.ids) for mark in own.marks)
    ):
        # more of the sentence follows: what stands up to here is this mark's
        rest = _Stretch(at, own.end, [], is_rest=True)
        own.end = at
        stretches.insert(following, rest)
    chosen = before
    if chosen is None or (own is None and "\n\n" in plain[chosen.end : at]):
        chosen = stretches[following] if following < len(stretches) else chosen
    if chosen is not None:
        chosen.marks.append(marker)


def _without_rests(stretches: Sequence[_Stretch]) -> list[_Stretch]:
    """A rest that no mark of its own follows belongs to the mark before it."""
    joined: list[_Stretch] = []
    for stretch in stretches:
        if stretch.is_rest and not stretch.marks and joined:
            joined[-1].end = stretch.end
        else:
            joined.append(stretch)
    return joined


def _in_answer(at: int, markers: Sequence[PlacedMarker], places: Sequence[int]) -> int:
    """The place in the answer that a place in the text without marks stands for."""
    before = bisect_left(places, at)
    return at + markers[before - 1].end - places[before - 1] if before else at
