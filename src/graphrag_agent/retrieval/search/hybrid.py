"""One query over all legs at once, fused, reranked, as hits. `search` is the entry."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphrag_agent.documents import Chunk, Hit, LegScore, assign_short_ids
from graphrag_agent.errors import SettingsError
from graphrag_agent.retrieval.embedders import Embedder
from graphrag_agent.retrieval.scope import Scope
from graphrag_agent.retrieval.search.evidence import select_distinct
from graphrag_agent.retrieval.search.fusion import Ranking, fuse_dbsf
from graphrag_agent.retrieval.search.rerank import Reranker, rerank_candidates
from graphrag_agent.retrieval.search.result import SearchResult
from graphrag_agent.retrieval.stores.port import ChunkStore, LegHit
from graphrag_agent.retrieval.tokenizer import count_terms

LEGS = ("bm25", "dense")
CANDIDATES_PER_LEG = 50
"""DBSF needs the tail of a ranking to know its spread; 50 is what the fusion was measured with."""
MAX_QUERY_CHARACTERS = 2000
"""A longer query is a pasted text; its beginning finds the same."""


@dataclass(frozen=True, slots=True)
class _LegResult:
    hits: list[LegHit]
    trace: dict[str, Any]


async def search(
    store: ChunkStore,
    embedder: Embedder | None,
    query: str,
    scope: Scope,
    top_k: int,
    legs: Sequence[str] | None = None,
    reranker: Reranker | None = None,
) -> SearchResult:
    """The `top_k` best chunks of the scope. `legs` None means all there are.

    A dense leg that fails is left out, with a note, as long as another leg answers; a reranker that fails leaves the
    fused order. Raises SettingsError for a bad `top_k` or an unknown leg.
    """
    legs = _checked_legs(legs, top_k)
    words = query.strip()[:MAX_QUERY_CHARACTERS]
    if not words:
        return SearchResult(query, (), note="The query is empty: ask with a few words.")
    started = time.perf_counter()
    runs = [_search_leg(leg, store, embedder, words, scope) for leg in legs]
    results = dict(zip(legs, await asyncio.gather(*runs), strict=True))
    if all("failed" in result.trace for result in results.values()):
        raise next(result.trace["failed"] for result in results.values())
    chunks = {hit.chunk.id: hit.chunk for result in results.values() for hit in result.hits}
    rankings = {leg: [(hit.chunk.id, hit.score) for hit in result.hits] for leg, result in results.items()}
    reranked = await rerank_candidates(reranker, words, fuse_dbsf(rankings), chunks)
    best, duplicates = select_distinct(reranked.ranking, chunks, top_k)
    hits = _hits(best, chunks, {**_places(rankings), "rerank": reranked.places})
    trace = {
        "legs": {leg: {**result.trace, **_described_failure(result)} for leg, result in results.items()},
        "fusion": "dbsf",
        "rerank": reranked.trace,
        "dropped": [
            {"chunk": name, "source": chunks[name].source, "duplicate_of": other} for name, other in duplicates.items()
        ],
        "milliseconds": _milliseconds(started),
    }
    note = await _note(store, scope, query, hits, results)
    return SearchResult(query, hits, f"{note} {reranked.note}".strip(), trace)


def _checked_legs(legs: Sequence[str] | None, top_k: int) -> tuple[str, ...]:
    if top_k < 1:
        raise SettingsError(f"top_k={top_k!r}: ask for at least one hit")
    chosen = tuple(dict.fromkeys(LEGS if legs is None else legs))
    unknown = [leg for leg in chosen if leg not in LEGS]
    if unknown or not chosen:
        raise SettingsError(f"legs={legs!r}: use one or more of {', '.join(LEGS)}")
    return chosen


async def _search_leg(leg: str, store: ChunkStore, embedder: Embedder | None, words: str, scope: Scope) -> _LegResult:
    started = time.perf_counter()
    if leg == "bm25":
        terms = await asyncio.to_thread(count_terms, words)  # the first call loads the stemmers
        hits = await store.search_bm25(terms, scope, CANDIDATES_PER_LEG)
    elif embedder is None:
        return _LegResult([], {"skipped": "no embedder"})
    elif await store.profile() is None:
        return _LegResult([], {"skipped": "no vectors stored"})
    else:
        try:
            hits = await store.search_dense(await embedder.embed_query(words), scope, CANDIDATES_PER_LEG)
        except Exception as error:  # an embedder behind a network may fail; bm25 still answers
            return _LegResult([], {"failed": error})
    return _LegResult(hits, {"candidates": len(hits), "milliseconds": _milliseconds(started)})


def _places(rankings: Mapping[str, Ranking]) -> dict[str, Mapping[str, LegScore]]:
    return {
        leg: {chunk_id: LegScore(rank, score) for rank, (chunk_id, score) in enumerate(ranking, start=1)}
        for leg, ranking in rankings.items()
    }


def _hits(best: Ranking, chunks: Mapping[str, Chunk], places: Mapping[str, Mapping[str, LegScore]]) -> tuple[Hit, ...]:
    names = assign_short_ids([chunk_id for chunk_id, _ in best])
    return tuple(
        Hit(names[name], chunks[name], score, {leg: found[name] for leg, found in places.items() if name in found})
        for name, score in best
    )


async def _note(
    store: ChunkStore, scope: Scope, query: str, hits: Sequence[Hit], results: Mapping[str, _LegResult]
) -> str:
    notes = []
    if len(query.strip()) > MAX_QUERY_CHARACTERS:
        notes.append(f"The query was cut to its first {MAX_QUERY_CHARACTERS} characters.")
    notes += [f"The {leg} leg failed and was left out." for leg, found in results.items() if "failed" in found.trace]
    if not hits:
        counts = await store.counts(scope)
        notes.append(
            "Nothing matched: try other words, fewer words, or the language of the documents."
            if counts.chunks
            else "There is nothing to search here: the knowledge base has no documents in this scope."
        )
    return " ".join(notes)


def _described_failure(result: _LegResult) -> dict[str, str]:
    error = result.trace.get("failed")
    return {"failed": f"{type(error).__name__}: {error}"} if error else {}


def _milliseconds(started: float) -> float:
    return round((time.perf_counter() - started) * 1000, 2)
