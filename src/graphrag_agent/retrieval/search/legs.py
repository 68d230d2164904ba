"""The lists that a search fuses: each query on each leg. A leg that fails costs its list only."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, runtime_checkable

from graphrag_agent.documents import Chunk
from graphrag_agent.errors import KnowledgeBaseError
from graphrag_agent.retrieval.embedders import Embedder
from graphrag_agent.retrieval.function_words import weigh_terms
from graphrag_agent.retrieval.scope import Scope
from graphrag_agent.retrieval.search.fusion import Ranking
from graphrag_agent.retrieval.search.strategies import Expansion, Strategy, expand_query
from graphrag_agent.retrieval.stores.port import ChunkStore, LegHit, Vector

LEGS = ("bm25", "dense")
CANDIDATES_PER_LEG = 50
"""DBSF needs the tail of a ranking to know its spread; 50 is what the fusion was measured with."""


@runtime_checkable
class QueryBatchEmbedder(Protocol):
    """An embedder that takes several queries at once; others are asked for each."""

    async def embed_queries(self, texts: Sequence[str]) -> Sequence[Vector]:
        """One vector a query, in order."""
        ...


@dataclass(frozen=True, slots=True)
class LegResult:
    """One list: a query on a leg."""

    hits: list[LegHit]
    trace: dict[str, Any]
    error: Exception | None = None

    @property
    def ranking(self) -> Ranking:
        return [(hit.chunk.id, hit.score) for hit in self.hits]


@dataclass(frozen=True, slots=True)
class Found:
    """All lists of a search, by leg name; those of extra queries are named `bm25/2`, `dense/2`, `bm25/3`."""

    lists: dict[str, LegResult]
    expansion: Expansion = field(default_factory=Expansion)

    @property
    def chunks(self) -> dict[str, Chunk]:
        return {hit.chunk.id: hit.chunk for found in self.lists.values() for hit in found.hits}

    @property
    def failed(self) -> list[str]:
        return [name for name, found in self.lists.items() if found.error]


class Legs(NamedTuple):
    """What the lists of one search have in common."""

    names: Sequence[str]
    store: ChunkStore
    embedder: Embedder | None
    scope: Scope
    limit: int = CANDIDATES_PER_LEG
    """Of one list."""

    async def find(self, words: str, strategy: Strategy) -> Found:
        """The query's lists and those of the strategy's extra queries; each votes once in the fusion.

        The query is searched while the extra ones are written. Raises what a leg raised when no leg answered.
        """
        if strategy.name == "direct":
            found = Found(await self._search(words))
        else:
            lists, (expansion, more) = await asyncio.gather(self._search(words), self._expand(words, strategy))
            found = Found({**lists, **more}, expansion)
        if found.failed and not any("candidates" in each.trace for each in found.lists.values()):
            raise next(each.error for each in found.lists.values() if each.error)
        return found

    async def _search(self, words: str) -> dict[str, LegResult]:
        results = await asyncio.gather(*(self._leg(name, words) for name in self.names))
        return dict(zip(self.names, results, strict=True))

    async def _expand(self, words: str, strategy: Strategy) -> tuple[Expansion, dict[str, LegResult]]:
        expansion = await expand_query(strategy, words)
        if not expansion.queries:
            return expansion, {}
        names = self.names
        is_passage = strategy.name == "hyde"
        vectors = await self._embedded(expansion.queries, is_passage=is_passage) if "dense" in names else []
        if vectors and is_passage:
            names = ["dense"]  # a passage's many words would drown the query's in bm25
        runs = {
            f"{name}/{number}": self._leg(name, text, vectors[number - 2] if vectors else None)
            for number, text in enumerate(expansion.queries, start=2)
            for name in names
        }
        return expansion, dict(zip(runs, await asyncio.gather(*runs.values()), strict=True))

    async def _embedded(self, texts: Sequence[str], *, is_passage: bool) -> Sequence[Vector | Exception]:
        """A vector a text, or why there is none; nothing where there are no vectors to compare with."""
        embedder = self.embedder
        try:
            if embedder is None or await self.store.profile() is None:
                return []
            if is_passage:
                found: Sequence[Vector] = await embedder.embed_passages(texts)
            elif isinstance(embedder, QueryBatchEmbedder):
                found = await embedder.embed_queries(texts)
            else:
                found = await asyncio.gather(*map(embedder.embed_query, texts))
            if len(found) != len(texts):
                raise KnowledgeBaseError(f"the embedder gave {len(found)} vectors for {len(texts)} texts")
            return found
        except Exception as error:
            return [error] * len(texts)

    async def _leg(self, name: str, words: str, vector: Vector | Exception | None = None) -> LegResult:
        started = time.perf_counter()
        more: dict[str, int] = {}
        try:
            if name == "bm25":
                terms = await asyncio.to_thread(weigh_terms, words)  # the first call loads the stemmers
                hits = await self.store.search_bm25(terms, self.scope, self.limit)
            elif self.embedder is None:
                return LegResult([], {"skipped": "no embedder"})
            elif await self.store.profile() is None:
                return LegResult([], {"skipped": "no vectors stored", **await self._pending()})
            elif isinstance(vector, Exception):
                raise vector
            else:
                vector = await self.embedder.embed_query(words) if vector is None else vector
                hits = await self.store.search_dense(vector, self.scope, self.limit)
                more = await self._pending()
        except Exception as error:  # what lies behind a network may fail; another leg still answers
            return LegResult([], {"failed": f"{type(error).__name__}: {error}"}, error)
        return LegResult(hits, {"candidates": len(hits), "milliseconds": milliseconds(started), **more})

    async def _pending(self) -> dict[str, int]:
        """How many chunks the leg can't find yet, where the store can tell."""
        try:
            counts = await self.store.counts(self.scope)
        except Exception:
            return {}
        return {"pending": counts.pending, "of": counts.chunks} if counts.pending else {"pending": 0}


def milliseconds(started: float) -> float:
    """Since that `time.perf_counter()`."""
    return round((time.perf_counter() - started) * 1000, 2)
