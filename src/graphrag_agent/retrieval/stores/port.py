"""What a store must do. Every implementation passes `tests/contracts/test_store.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from graphrag_agent.documents import Chunk, Document
from graphrag_agent.retrieval.scope import Scope
from graphrag_agent.retrieval.stores.writer_turns import WriterTurns

Vector = Sequence[float]
Terms = Mapping[str, int]
"""Token -> how often it occurs in the text."""
QueryTerms = Mapping[str, float]
"""Token -> its weight in the query, above 0: the score has each term's BM25 score times this."""


class ChunkRecord(NamedTuple):
    """A chunk as it is stored: with its tokens and, if there is an embedder, its unit-length vector."""

    chunk: Chunk
    terms: Terms
    vector: Vector | None


class LegHit(NamedTuple):
    """A chunk and its score in one leg; larger is better, never zero or below for bm25."""

    chunk: Chunk
    score: float


class StoreProfile(NamedTuple):
    """What the stored vectors were made with."""

    embedder: str
    """Identity of the embedder: name, version, weights."""
    dimensions: int


class StoreCounts(NamedTuple):
    """How much of the store lies in a scope."""

    documents: int
    chunks: int
    pending: int
    """Chunks without a vector, whether or not there is an embedder."""


class ChunkStore(Protocol):
    """Chunks and documents of all tenants; every read takes a scope and applies it before scoring.

    Methods are async; implementations over blocking engines move the call to a thread. Writes of one document become
    visible chunk by chunk, so its `Document` is written last: chunks without a record, or with one that has no content
    hash, are unfinished.
    BM25 statistics are those of the scope's tenant, so nobody's scores tell what another tenant has.
    """

    turns: WriterTurns
    """Taken by whoever writes or removes whole documents, for a document's record and chunks are several writes."""

    async def profile(self) -> StoreProfile | None:
        """What the vectors were made with; None before the first vector is written."""
        ...

    async def write_profile(self, profile: StoreProfile) -> None:
        """Before the first vector; all have this length until `drop_vectors`. The same profile again does nothing.

        Raises EmbedderMismatchError where there is another one.
        """
        ...

    async def write_chunks(self, records: Sequence[ChunkRecord]) -> None:
        """Insert, or replace where the chunk's id is there already.

        A record without a vector keeps the one that is stored for this id and the same `text_hash`.
        """
        ...

    async def write_vectors(self, vectors: Mapping[str, Vector], embedder: str) -> None:
        """Chunk id -> unit vector, for chunks that are stored; unknown ids are ignored.

        Raises EmbedderMismatchError unless the profile names this embedder when they are written.
        """
        ...

    async def drop_vectors(self) -> None:
        """Forget all vectors and the profile. After a kill in between, the next open finishes it or finds all there."""
        ...

    async def remove_chunks(self, chunk_ids: Sequence[str]) -> None:
        """Unknown ids are ignored."""
        ...

    async def vectors(self, chunk_ids: Sequence[str]) -> dict[str, Vector]:
        """Chunk id -> vector, for those of the ids that are stored with one."""
        ...

    async def known_vectors(self, tenant: str, text_hashes: Sequence[str]) -> dict[str, Vector]:
        """`text_hash` -> vector of any of the tenant's chunks with this text, for those that have one.

        A cache that needs no cleaning: what is deleted is gone from it, and no tenant meets another's texts.
        """
        ...

    async def pending_chunks(self, limit: int) -> list[Chunk]:
        """For the writer, who sees all scopes: chunks without a vector, in any order that stays the same."""
        ...

    async def chunks(self, document_id: str, scope: Scope) -> list[Chunk]:
        """The document's chunks in their order; empty outside the scope."""
        ...

    async def search_dense(self, vector: Vector, scope: Scope, limit: int) -> list[LegHit]:
        """Best cosine similarity first."""
        ...

    async def search_bm25(self, terms: QueryTerms, scope: Scope, limit: int) -> list[LegHit]:
        """Best BM25 score first; chunks without any of the terms are left out."""
        ...

    async def write_document(self, document: Document) -> None: ...

    async def remove_document(self, document_id: str) -> None:
        """The document's record only; its chunks are removed by `remove_chunks`."""
        ...

    async def document(self, document_id: str, scope: Scope) -> Document | None:
        """With its text; None when unknown or outside the scope."""
        ...

    async def documents(self, scope: Scope) -> list[Document]:
        """By source, without text (`text` is empty)."""
        ...

    async def content_hash(self, document_id: str) -> str | None:
        """For the writer, who sees all scopes: the hash of the stored record; None without one."""
        ...

    async def chunk_ids(self, document_id: str) -> list[str]:
        """For the writer, who sees all scopes: ids of all stored chunks of the document, in no order."""
        ...

    async def counts(self, scope: Scope) -> StoreCounts:
        """Asked with each search, so they cost little until the next write."""
        ...

    async def flush(self) -> None:
        """What was written before survives a kill after this returns (where the store is kept at all)."""
        ...

    async def aclose(self) -> None: ...
