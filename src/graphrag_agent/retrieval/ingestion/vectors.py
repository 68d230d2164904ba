"""The vectors of an open knowledge base: whose they are, and made at once or in the background."""

from __future__ import annotations

from graphrag_agent.retrieval.embedders import Embedder
from graphrag_agent.retrieval.ingestion.background import BackgroundFill
from graphrag_agent.retrieval.ingestion.embedding import EmbeddingReport, VectorsTold, fill_vectors
from graphrag_agent.retrieval.ingestion.pipeline import Progress
from graphrag_agent.retrieval.scope import Scope
from graphrag_agent.retrieval.stores.port import ChunkStore
from graphrag_agent.retrieval.stores.profile_file import refuse_other_embedder


class Vectors:
    """Those of one store and one embedder; without an embedder none is made, and words find all there is."""

    def __init__(self, store: ChunkStore, embedder: Embedder | None) -> None:
        self._store = store
        self._embedder = embedder
        self._background = BackgroundFill(store, embedder) if embedder else None

    @property
    def problem(self) -> str | None:
        """Why chunks are still pending, after the last try."""
        return self._background.problem if self._background else None

    async def refuse_others(self, *, writing: bool) -> None:
        """Raises EmbedderMismatchError where the store's are of another embedder."""
        given = self._embedder.identity if self._embedder else None
        refuse_other_embedder(await self._store.profile(), given, writing=writing)

    async def drop_others(self) -> None:
        """Those of another embedder go."""
        profile = await self._store.profile()
        if profile and self._embedder and profile.embedder != self._embedder.identity:
            await self._store.drop_vectors()

    def resume(self) -> None:
        """What an earlier process has left is taken up in the background."""
        if self._background:
            self._background.start_once()

    async def make(self, scope: Scope, progress: Progress | None, *, wait: bool) -> EmbeddingReport:
        """What is pending, of all tenants; the report counts the scope's. Without `wait` that is done later."""
        if self._embedder is None or self._background is None:
            return EmbeddingReport(0, (await self._store.counts(scope)).pending)
        if not wait:
            self._background.start()
            return EmbeddingReport(0, (await self._store.counts(scope)).pending)
        told = VectorsTold(progress, (await self._store.counts(scope)).pending) if progress else None
        outcome = await fill_vectors(self._store, self._embedder, told)
        pending = (await self._store.counts(scope)).pending
        self._background.problem = outcome.problem
        if outcome.error:
            self._background.start_later()
        return EmbeddingReport(outcome.embedded + outcome.reused, pending, outcome.problem)

    async def stop(self) -> None:
        """Nothing is made in the background any more."""
        if self._background:
            await self._background.stop()
