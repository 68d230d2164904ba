"""One query over all legs at once, fused, reranked, as hits. `search` is the entry."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from graphrag_agent.documents import Chunk, Hit, LegScore, assign_short_ids
from graphrag_agent.errors import SettingsError
from graphrag_agent.retrieval.embedders import Embedder
from graphrag_agent.retrieval.scope import Scope
from graphrag_agent.retrieval.search.diversity import DIVERSIFIED, diversify
from graphrag_agent.retrieval.search.evidence import select_distinct, shingle_similarity
from graphrag_agent.retrieval.search.exact import find_identifier, lift_exact
from graphrag_agent.retrieval.search.fusion import FUSIONS, Ranking
from graphrag_agent.retrieval.search.legs import CANDIDATES_PER_LEG, LEGS, Found, Legs, milliseconds
from graphrag_agent.retrieval.search.options import SearchOptions
from graphrag_agent.retrieval.search.rerank import Reranker, rerank_candidates
from graphrag_agent.retrieval.search.result import SearchResult
from graphrag_agent.retrieval.search.strategies import DIRECT
from graphrag_agent.retrieval.search.trace import Steps, describe
from graphrag_agent.retrieval.stores.port import ChunkStore

__all__ = ["CANDIDATES_PER_LEG", "LEGS", "MAX_QUERY_CHARACTERS", "search"]

MAX_QUERY_CHARACTERS = 2000
"""A longer query is a pasted text; its beginning finds the same."""

_USUAL = SearchOptions()


async def search(
    store: ChunkStore,
    embedder: Embedder | None,
    query: str,
    scope: Scope,
    top_k: int,
    legs: Sequence[str] | None = None,
    reranker: Reranker | None = None,
    options: SearchOptions = _USUAL,
) -> SearchResult:
    """The `top_k` best chunks of the scope. `legs` None means all there are.

    A leg that fails is left out, with a note, as long as another leg answers; a reranker or a query writer that fails
    leaves the order without it. A query that is one identifier is searched as it stands, and whoever holds it comes
    first before reranking. Raises SettingsError for a bad `top_k` or an unknown leg.
    """
    legs = _checked_legs(legs, top_k)
    words = query.strip()[:MAX_QUERY_CHARACTERS]
    if not words:
        return SearchResult(query, (), note="The query is empty: ask with a few words.")
    started = time.perf_counter()
    identifier = find_identifier(words)
    strategy = DIRECT if identifier else options.strategy
    found = await Legs(legs, store, embedder, scope, max(CANDIDATES_PER_LEG, top_k)).find(words, strategy)
    chunks = found.chunks
    rankings = {name: result.ranking for name, result in found.lists.items()}
    fused = FUSIONS[options.fusion](rankings)
    fused, holders = lift_exact(fused, chunks, identifier) if identifier else (fused, 0)
    reranked = await rerank_candidates(reranker if options.rerank else None, words, fused, chunks)
    ranking = await _diversified(store, reranked.ranking, chunks) if options.diversity else reranked.ranking
    distinct = select_distinct(ranking, chunks, top_k)
    hits = _hits(distinct.ranking, chunks, {**_places(rankings), "rerank": reranked.places})
    steps = Steps(words, options, found, reranked, ranking, distinct, (identifier, holders))
    trace = {**describe(steps, chunks), "milliseconds": milliseconds(started)}
    note = await _note(store, scope, query, hits, found)
    return SearchResult(query, hits, f"{note} {reranked.note}".strip(), trace)


def _checked_legs(legs: Sequence[str] | None, top_k: int) -> tuple[str, ...]:
    if top_k < 1:
        raise SettingsError(f"top_k={top_k!r}: ask for at least one hit")
    chosen = tuple(dict.fromkeys(LEGS if legs is None else legs))
    unknown = [leg for leg in chosen if leg not in LEGS]
    if unknown or not chosen:
        raise SettingsError(f"legs={legs!r}: use one or more of {', '.join(LEGS)}")
    return chosen


async def _diversified(store: ChunkStore, ranking: Ranking, chunks: Mapping[str, Chunk]) -> Ranking:
    """By the cosine of the stored vectors; by shared words where one of the two has none."""
    vectors = await store.vectors([name for name, _ in ranking[:DIVERSIFIED]])

    def similarity(one: str, other: str) -> float:
        if one in vectors and other in vectors:
            return sum(a * b for a, b in zip(vectors[one], vectors[other], strict=True))
        return shingle_similarity(chunks[one].text, chunks[other].text)

    return diversify(ranking, similarity)


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


async def _note(store: ChunkStore, scope: Scope, query: str, hits: Sequence[Hit], found: Found) -> str:
    notes = []
    if len(query.strip()) > MAX_QUERY_CHARACTERS:
        notes.append(f"The query was cut to its first {MAX_QUERY_CHARACTERS} characters.")
    notes += [f"The {leg} leg failed and was left out." for leg in found.failed]
    unfilled = next((each.trace for each in found.lists.values() if each.trace.get("pending")), None)
    if unfilled:
        pending, of = unfilled["pending"], unfilled["of"]
        notes.append(f"{pending} of {of} passages have no vectors yet and are found by words only.")
    if found.expansion.failed:
        notes.append(f"Only the query itself was searched: {found.expansion.failed}.")
    if not hits:
        counts = await store.counts(scope)
        notes.append(
            "Nothing matched: try other words, fewer words, or the language of the documents."
            if counts.chunks
            else "There is nothing to search here: the knowledge base has no documents in this scope."
        )
    return " ".join(notes)
