"""Hits that stand side by side in a document, as one passage. For those who show hits to a model.

A search itself gives chunks: its number of hits is what was asked for, and the usual search reads no document. Here a
document is read, and only where it holds neighbours.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from graphrag_agent.documents import Hit
from graphrag_agent.errors import GraphragError
from graphrag_agent.token_estimate import UNITS_PER_TOKEN, count_token_units

MAX_MERGED_TOKENS = 900
"""Three full chunks: a longer passage is a document, and cut or left out as a whole by a token limit."""
_MAX_GAP_CHARACTERS = 200
"""Between neighbours lie blanks; more is text that no chunk has."""

ReadDocument = Callable[[str, int, int], Awaitable[str]]
"""(document id, start, end) -> that part of the document's text."""


class Merged(NamedTuple):
    """Hits, neighbours in one."""

    hits: tuple[Hit, ...]
    """Each in the place, and under the id, of its best chunk; text and offsets are those of the whole passage."""
    chunk_ids: Mapping[str, tuple[str, ...]]
    """Chunk id of a merged hit -> ids of the other chunks in it, in document order."""


async def merge_neighbours(hits: Sequence[Hit], read: ReadDocument) -> Merged:
    """The hits with adjoining chunks of one document, page and heading made one, exactly as the document has them.

    A run stays apart where it would be too long, or where the document no longer says what the chunks say.
    """
    rank = {hit.chunk.id: place for place, hit in enumerate(hits)}
    runs = [run for run in _runs(hits) if len(run) > 1]
    texts = await asyncio.gather(*(_read(run, read) for run in runs)) if runs else []
    merged: dict[str, Hit] = {}
    others: dict[str, tuple[str, ...]] = {}
    for run, text in zip(runs, texts, strict=True):
        if text is None:
            continue
        best = min(run, key=lambda hit: rank[hit.chunk.id])
        start = run[0].chunk.start
        chunk = replace(best.chunk, text=text, start=start, end=start + len(text))
        merged[best.chunk.id] = replace(best, chunk=chunk)
        others[best.chunk.id] = tuple(hit.chunk.id for hit in run if hit is not best)
    gone = {name for names in others.values() for name in names}
    kept = tuple(merged.get(hit.chunk.id, hit) for hit in hits if hit.chunk.id not in gone)
    return Merged(kept, others)


def _runs(hits: Sequence[Hit]) -> list[list[Hit]]:
    """Hits of one document, page and heading in document order, cut where they don't adjoin or grow too long."""
    places: defaultdict[tuple[object, ...], list[Hit]] = defaultdict(list)
    for hit in hits:
        places[hit.chunk.document_id, hit.chunk.page, hit.chunk.heading].append(hit)
    runs: list[list[Hit]] = []
    for found in places.values():
        found.sort(key=lambda hit: (hit.chunk.start, hit.chunk.end))
        run, units = [found[0]], _units(found[0])
        for last, hit in pairwise(found):
            units += _units(hit)
            if _adjoin(last, hit) and units <= MAX_MERGED_TOKENS * UNITS_PER_TOKEN:
                run.append(hit)
            else:
                runs.append(run)
                run, units = [hit], _units(hit)
        runs.append(run)
    return runs


def _adjoin(first: Hit, second: Hit) -> bool:
    gap = second.chunk.start - first.chunk.end
    return gap <= 0 or (second.chunk.position == first.chunk.position + 1 and gap <= _MAX_GAP_CHARACTERS)


def _units(hit: Hit) -> int:
    return count_token_units(hit.chunk.text)


async def _read(run: Sequence[Hit], read: ReadDocument) -> str | None:
    """The run's text from the document, if each chunk stands there as the search found it."""
    start, end = run[0].chunk.start, max(hit.chunk.end for hit in run)
    try:
        text = await read(run[0].chunk.document_id, start, end)
    except GraphragError:  # gone meanwhile; the chunks themselves were found
        return None
    stands = (text[hit.chunk.start - start : hit.chunk.end - start] == hit.chunk.text for hit in run)
    return text if len(text) == end - start and all(stands) else None
