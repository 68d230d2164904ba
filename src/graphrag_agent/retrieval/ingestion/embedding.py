"""Vectors for stored chunks that have none yet. `fill_vectors` is the entry.

Chunks are written without vectors, so words find them at once. What is pending is known to the store alone: a kill
loses the vectors of the last seconds, and the next call goes on.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from graphrag_agent.documents import Chunk
from graphrag_agent.errors import GraphragError, KnowledgeBaseError
from graphrag_agent.finishing import finish
from graphrag_agent.retrieval.embedders import Embedder
from graphrag_agent.retrieval.stores.payload import text_hash
from graphrag_agent.retrieval.stores.port import ChunkStore, StoreProfile, Vector
from graphrag_agent.retrieval.stores.profile_file import require_profile

VectorProgress = Callable[[int], None]
"""Called with the number of chunks that got their vector since the call before."""

BATCH_CHUNKS = 32
"""Chunks embedded and written together: a request worth its way to an embedder behind a network."""
_ROUND_CHUNKS = 256
"""Chunks read at once; equal texts among them are embedded once."""
_FLUSH_SECONDS = 5.0
"""What a kill may cost."""
_RETRY_SECONDS = (0.5, 2.0)
"""Waits before a failed batch is tried again."""
_PROBE = "hello"
"""A text that no embedder refuses: where it fails too, the embedder is at fault and not the texts."""


@dataclass(slots=True)
class FillOutcome:
    """What one call of `fill_vectors` did."""

    embedded: int = 0
    reused: int = 0
    """Chunks that got the vector of an equal text of their tenant."""
    refused: dict[str, str] = field(default_factory=dict)
    """Chunk id -> why the embedder doesn't take its text, while it takes others."""
    error: str | None = None
    """Why it stopped before the end."""

    @property
    def problem(self) -> str | None:
        """What there is to say about chunks that are still pending."""
        if self.error or not self.refused:
            return self.error
        return f"the embedder refuses {len(self.refused)} passages: {next(iter(self.refused.values()))}"


class EmbeddingReport(NamedTuple):
    """What became of chunks that were pending."""

    embedded: int
    """Chunks of all tenants that have a vector now and had none before."""
    pending: int
    """Chunks of the scope that still have none."""
    problem: str | None = None
    """Why any tenant's have none."""

    @property
    def own_problem(self) -> str | None:
        """The problem, where it keeps back chunks of the scope; others' are none of its reader's business."""
        return self.problem if self.pending else None


async def fill_vectors(store: ChunkStore, embedder: Embedder, progress: VectorProgress | None = None) -> FillOutcome:
    """Embed what is pending, of all tenants. A failing embedder or store isn't raised: the outcome tells of it."""
    fill = VectorFill(embedder, progress)
    while await fill.advance(store):
        pass
    if fill.outcome.error and (fill.outcome.embedded or fill.outcome.reused):
        await store.flush()
    return fill.outcome


VECTORS = "(vectors)"
"""The name under which `progress` is told of vectors; files are told under theirs."""


class VectorsTold:
    """Progress of vectors told like that of files: done, in all, `VECTORS`."""

    def __init__(self, progress: Callable[[int, int, str], None], expected: int) -> None:
        self._progress = progress
        self._expected = expected
        self._done = 0

    def __call__(self, count: int) -> None:
        self._done += count
        if self._expected:  # other tenants' vectors are made too, and not told of
            self._progress(min(self._done, self._expected), self._expected, VECTORS)


class VectorFill:
    """`fill_vectors` batch by batch, for a caller who wants to let go of the store in between.

    Several may fill one store at once, in one process or many: each takes the batches of a round in an order of its
    own, and leaves out what has got its vector meanwhile.
    """

    def __init__(self, embedder: Embedder, progress: VectorProgress | None = None) -> None:
        self.outcome = FillOutcome()
        self._embedder = embedder
        self._progress = progress
        self._batches: list[list[Chunk]] = []
        self._flushed = time.monotonic()

    async def advance(self, store: ChunkStore) -> bool:
        """One batch; whether there may be more to do."""
        try:
            if not self._batches and not await self._begin_round(store):
                if self.outcome.embedded or self.outcome.reused:
                    await store.flush()
                return False
            if self._batches:
                await self._embed(store, self._batches.pop())
            if time.monotonic() - self._flushed > _FLUSH_SECONDS:
                await store.flush()
                self._flushed = time.monotonic()
        except Exception as error:
            self.outcome.error = described(error)
        return self.outcome.error is None

    async def _begin_round(self, store: ChunkStore) -> bool:
        """Whether anything was pending."""
        pending = await store.pending_chunks(_ROUND_CHUNKS + len(self.outcome.refused))
        pending = [chunk for chunk in pending if chunk.id not in self.outcome.refused]
        if pending and (profile := await store.profile()):
            require_profile(profile, self._embedder.identity)
        fresh = await self._reuse(store, pending)
        self._batches = [fresh[start : start + BATCH_CHUNKS] for start in range(0, len(fresh), BATCH_CHUNKS)]
        random.shuffle(self._batches)
        return bool(pending)

    async def _reuse(self, store: ChunkStore, pending: Sequence[Chunk]) -> list[Chunk]:
        """Those that no stored vector fits, like lengths together, each text of a tenant once."""
        hashes: dict[str, dict[str, list[Chunk]]] = {}
        for chunk in pending:
            hashes.setdefault(chunk.tenant, {}).setdefault(text_hash(chunk), []).append(chunk)
        fresh = []
        for tenant, chunks in hashes.items():
            known = await store.known_vectors(tenant, list(chunks))
            found = {chunk.id: vector for name, vector in known.items() for chunk in chunks.get(name, ())}
            if found:
                await self._write(store, found)
                self.outcome.reused += len(found)
            fresh += [same[0] for name, same in chunks.items() if name not in known]
        return sorted(fresh, key=lambda chunk: len(chunk.index_text))

    async def _embed(self, store: ChunkStore, batch: Sequence[Chunk]) -> None:
        done = await store.vectors([chunk.id for chunk in batch])
        batch = [chunk for chunk in batch if chunk.id not in done]
        if not batch:
            return
        for wait in (0.0, *_RETRY_SECONDS):
            await asyncio.sleep(wait)
            try:
                vectors = await self._embedder.embed_passages([chunk.index_text for chunk in batch])
            except Exception:
                vectors = None  # the probe below tells whose fault it is
            if vectors is not None:
                await self._write_embedded(store, batch, vectors)
                return
        await self._embed_singly(store, batch)

    async def _embed_singly(self, store: ChunkStore, batch: Sequence[Chunk]) -> None:
        """Leave out the texts at fault. Raises what the embedder raises where it takes nothing at all."""
        await self._embedder.embed_passages([_PROBE])
        for chunk in batch:
            try:
                vectors = await self._embedder.embed_passages([chunk.index_text])
            except Exception as cause:
                self.outcome.refused[chunk.id] = described(cause)
            else:
                await self._write_embedded(store, [chunk], vectors)

    async def _write_embedded(self, store: ChunkStore, batch: Sequence[Chunk], vectors: Sequence[Vector]) -> None:
        profile = await store.profile()
        if profile is None:
            profile = StoreProfile(self._embedder.identity, len(vectors[0]))
            await store.write_profile(profile)
        wrong = next((len(vector) for vector in vectors if len(vector) != profile.dimensions), None)
        if wrong is not None:
            raise KnowledgeBaseError(f"{self._embedder.identity} gave {wrong} numbers a text, not {profile.dimensions}")
        await self._write(store, {chunk.id: vector for chunk, vector in zip(batch, vectors, strict=True)})
        self.outcome.embedded += len(batch)

    async def _write(self, store: ChunkStore, vectors: Mapping[str, Vector]) -> None:
        # it goes on in a thread, and whoever cancels may close the store next
        await finish(store.write_vectors(vectors, self._embedder.identity))
        if self._progress:
            self._progress(len(vectors))


def described(error: Exception) -> str:
    """One line that may be shown to anyone.

    Messages from outside are left out unless they come from the system: a provider's may quote the text it was sent.
    """
    # requests' errors are OSErrors too
    is_ours = isinstance(error, GraphragError) or (isinstance(error, OSError) and type(error).__module__ == "builtins")
    return f"{type(error).__name__}: {error}" if is_ours and str(error) else type(error).__name__
