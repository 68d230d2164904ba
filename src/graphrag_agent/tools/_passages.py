"""A document's text as passages that can be cited: whole chunks where there are, with page and heading. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

from graphrag_agent.citations import Evidence
from graphrag_agent.documents import Chunk, Document, short_id
from graphrag_agent.models.packing import fitting_end
from graphrag_agent.retrieval.search.merging import MAX_MERGED_TOKENS
from graphrag_agent.token_estimate import UNITS_PER_TOKEN, count_token_units

_SENTENCE_CHARACTERS = 40_000
"""Looked at to find where a sentence ends: far more than the largest budget of one reading."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of the document's text with one page and one heading. Together the segments are the whole text."""

    start: int
    end: int
    page: int | None
    heading: str
    chunk_ids: tuple[str, ...] = ()
    """Of the chunks that lie in it whole."""


def split_segments(document: Document, chunks: Sequence[Chunk]) -> list[Segment]:
    """One segment a chunk, each up to the next one, so that no text is lost; one for a text without chunks."""
    ordered = sorted(chunks, key=lambda chunk: (chunk.start, chunk.position))
    first_at = {chunk.start: chunk for chunk in reversed(ordered)}
    starts = sorted(first_at)
    if not starts:
        return [Segment(0, len(document.text), None, "")] if document.text else []
    bounds = [0, *starts[1:], len(document.text)]
    return [
        Segment(start, end, first_at[at].page, first_at[at].heading, (first_at[at].id,))
        for at, (start, end) in zip(starts, pairwise(bounds), strict=True)
        if start < end
    ]


def cut_segments(text: str, segments: Sequence[Segment], start: int, end: int, max_tokens: int) -> list[Segment]:
    """What lies between start and end, as far as it fits into the tokens: whole segments, else whole sentences.

    At least something, so that reading on always gets on.
    """
    room = max_tokens * UNITS_PER_TOKEN
    taken: list[Segment] = []
    first = max(bisect_right(segments, start, key=lambda segment: segment.start) - 1, 0)
    for segment in islice(segments, first, None):
        low, high = max(segment.start, start), min(segment.end, end)
        if low >= high:
            break
        is_whole = (low, high) == (segment.start, segment.end)
        part = Segment(low, high, segment.page, segment.heading, segment.chunk_ids if is_whole else ())
        cost = count_token_units(text[low:high])
        if cost > room:
            if not taken:
                cut = _fitting_end(text, low, high, room)
                whole = segment.chunk_ids if is_whole and cut == high else ()
                taken.append(Segment(low, cut, part.page, part.heading, whole))
            break
        taken.append(part)
        room -= cost
    return taken


def join_segments(text: str, segments: Sequence[Segment]) -> Iterator[Segment]:
    """Neighbours of one page and heading as one, as far as a passage may grow."""
    last: Segment | None = None
    for segment in segments:
        if last is not None and _can_join(text, last, segment):
            last = Segment(last.start, segment.end, last.page, last.heading, last.chunk_ids + segment.chunk_ids)
            continue
        if last is not None:
            yield last
        last = segment
    if last is not None:
        yield last


def passage_evidence(document: Document, segment: Segment) -> Evidence | None:
    """The segment as evidence, without blanks at its ends; None where it has nothing else.

    Under the id of its first chunk, as a search shows it; a part of a chunk has an id of its own.
    """
    text = document.text[segment.start : segment.end]
    stripped = text.strip()
    if not stripped:
        return None
    start = segment.start + len(text) - len(text.lstrip())
    first, *others = segment.chunk_ids or (f"{document.id}:{start}",)
    return Evidence(
        id=short_id(first),
        chunk_id=first,
        document_id=document.id,
        title=document.title,
        source=document.source,
        page=segment.page,
        heading=segment.heading,
        score=1.0,
        start=start,
        end=start + len(stripped),
        text=stripped,
        merged=tuple(others),
    )


def _can_join(text: str, first: Segment, second: Segment) -> bool:
    is_same = (first.page, first.heading, bool(first.chunk_ids)) == (
        second.page,
        second.heading,
        bool(second.chunk_ids),
    )
    return is_same and count_token_units(text[first.start : second.end]) <= MAX_MERGED_TOKENS * UNITS_PER_TOKEN


def _fitting_end(text: str, start: int, end: int, room: int) -> int:
    """Behind the last sentence that fits; in mid-sentence where not even the first one does."""
    window = text[start : min(end, start + _SENTENCE_CHARACTERS)]
    return start + fitting_end(window, room)
