"""The `memory` store: vectors in qdrant-client's local mode, BM25 beside it; gone with the process."""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any, TypeVar

from qdrant_client import QdrantClient, models

from graphrag_agent.documents import Chunk, Document
from graphrag_agent.retrieval.scope import Scope, stored_access
from graphrag_agent.retrieval.stores.bm25 import BM25Index
from graphrag_agent.retrieval.stores.count_cache import CountCache
from graphrag_agent.retrieval.stores.payload import text_hash
from graphrag_agent.retrieval.stores.points import point_id
from graphrag_agent.retrieval.stores.port import ChunkRecord, LegHit, QueryTerms, StoreCounts, StoreProfile, Vector
from graphrag_agent.retrieval.stores.profile_file import require_profile
from graphrag_agent.retrieval.stores.writer_turns import WriterTurns

T = TypeVar("T")
_COLLECTION = "chunks"
_DIGITS = 6
"""Of a similarity. Those behind depend on how many vectors numpy multiplied at once, other tenants' among them."""


class MemoryStore:
    """A `ChunkStore` for notebooks, tests and machines without an edge wheel."""

    def __init__(self) -> None:
        self.turns = WriterTurns()
        self._lock = threading.RLock()  # local mode breaks under concurrent calls
        self._client = QdrantClient(":memory:")
        self._profile: StoreProfile | None = None
        self._chunks: dict[str, Chunk] = {}
        self._of_document: defaultdict[str, set[str]] = defaultdict(set)
        self._vectors: dict[str, Vector] = {}
        self._pending: dict[str, None] = {}
        """Ids of the chunks without a vector, in the order of writing."""
        self._of_text: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        """Tenant and text hash -> ids of the chunks with a vector."""
        self._documents: dict[str, Document] = {}
        self._indexes: dict[str, BM25Index] = {}
        self._by_access: dict[object, Chunk] = {}
        self._counted = CountCache()

    async def profile(self) -> StoreProfile | None:
        return self._profile

    async def write_profile(self, profile: StoreProfile) -> None:
        await self._locked(self._create_collection, profile)

    async def write_chunks(self, records: Sequence[ChunkRecord]) -> None:
        await self._changed(self._write_chunks, list(records))

    async def write_vectors(self, vectors: Mapping[str, Vector], embedder: str) -> None:
        await self._changed(self._write_vectors, dict(vectors), embedder)

    async def drop_vectors(self) -> None:
        await self._changed(self._drop_vectors)

    async def remove_chunks(self, chunk_ids: Sequence[str]) -> None:
        await self._changed(self._remove_chunks, list(chunk_ids))

    async def vectors(self, chunk_ids: Sequence[str]) -> dict[str, Vector]:
        return {chunk_id: self._vectors[chunk_id] for chunk_id in chunk_ids if chunk_id in self._vectors}

    async def known_vectors(self, tenant: str, text_hashes: Sequence[str]) -> dict[str, Vector]:
        return await self._locked(self._known_vectors, tenant, list(text_hashes))

    async def pending_chunks(self, limit: int) -> list[Chunk]:
        return await self._locked(lambda: [self._chunks[name] for name in islice(self._pending, limit)])

    async def chunks(self, document_id: str, scope: Scope) -> list[Chunk]:
        return await self._locked(self._list_chunks, document_id, scope)

    async def search_dense(self, vector: Vector, scope: Scope, limit: int) -> list[LegHit]:
        return [] if scope.is_empty else await self._locked(self._search_dense, vector, scope, limit)

    async def search_bm25(self, terms: QueryTerms, scope: Scope, limit: int) -> list[LegHit]:
        return [] if scope.is_empty else await self._locked(self._search_bm25, terms, scope, limit)

    async def write_document(self, document: Document) -> None:
        await self._changed(self._documents.__setitem__, document.id, document)

    async def remove_document(self, document_id: str) -> None:
        await self._changed(self._documents.pop, document_id, None)

    async def document(self, document_id: str, scope: Scope) -> Document | None:
        document = self._documents.get(document_id)
        return document if document and scope.allows(document) else None

    async def documents(self, scope: Scope) -> list[Document]:
        return await self._locked(self._list_documents, scope)

    async def content_hash(self, document_id: str) -> str | None:
        document = self._documents.get(document_id)
        return document.content_hash if document else None

    async def chunk_ids(self, document_id: str) -> list[str]:
        return list(self._of_document.get(document_id, ()))

    async def counts(self, scope: Scope) -> StoreCounts:
        return await self._locked(self._counted.counts, scope, self._count)

    async def flush(self) -> None:
        return None

    async def aclose(self) -> None:
        await self._locked(self._client.close)

    async def _locked(self, call: Callable[..., T], *args: Any) -> T:
        def run() -> T:
            with self._lock:
                return call(*args)

        return await asyncio.to_thread(run)

    async def _changed(self, call: Callable[..., T], *args: Any) -> None:
        try:
            await self._locked(call, *args)
        finally:
            self._counted.forget()

    def _write_chunks(self, records: list[ChunkRecord]) -> None:
        records = [self._with_kept_vector(record) for record in records]
        self._remove_chunks([record.chunk.id for record in records])
        for chunk, terms, _ in records:
            access = tuple(stored_access(chunk).items())
            self._by_access.setdefault(access, chunk)
            self._chunks[chunk.id] = chunk
            self._of_document[chunk.document_id].add(chunk.id)
            self._indexes.setdefault(chunk.tenant, BM25Index()).add(chunk.id, terms, access)
            self._pending[chunk.id] = None
        self._add_vectors({record.chunk.id: record.vector for record in records if record.vector is not None})

    def _with_kept_vector(self, record: ChunkRecord) -> ChunkRecord:
        old, vector = self._chunks.get(record.chunk.id), self._vectors.get(record.chunk.id)
        if record.vector is not None or old is None or vector is None or text_hash(old) != text_hash(record.chunk):
            return record
        return record._replace(vector=vector)

    def _write_vectors(self, vectors: dict[str, Vector], embedder: str) -> None:
        require_profile(self._profile, embedder)
        self._add_vectors({name: vector for name, vector in vectors.items() if name in self._chunks})

    def _add_vectors(self, vectors: dict[str, Vector]) -> None:
        for name, vector in vectors.items():
            chunk = self._chunks[name]
            self._vectors[name] = vector
            self._of_text[chunk.tenant, text_hash(chunk)].add(name)
            self._pending.pop(name, None)
        if vectors:
            self._client.upsert(_COLLECTION, [_point(self._chunks[name], vector) for name, vector in vectors.items()])

    def _known_vectors(self, tenant: str, text_hashes: list[str]) -> dict[str, Vector]:
        found = {name: next(iter(self._of_text.get((tenant, name), ())), None) for name in text_hashes}
        return {name: self._vectors[chunk_id] for name, chunk_id in found.items() if chunk_id is not None}

    def _create_collection(self, profile: StoreProfile) -> None:
        if self._profile is not None:
            require_profile(self._profile, profile.embedder)
            return
        vectors = models.VectorParams(size=profile.dimensions, distance=models.Distance.COSINE)
        self._client.create_collection(_COLLECTION, vectors_config=vectors)
        self._profile = profile

    def _drop_vectors(self) -> None:
        if self._profile is not None:
            self._client.delete_collection(_COLLECTION)
        self._profile = None
        self._vectors.clear()
        self._of_text.clear()
        self._pending = dict.fromkeys(self._chunks)

    def _remove_chunks(self, chunk_ids: list[str]) -> None:
        known = [chunk_id for chunk_id in dict.fromkeys(chunk_ids) if chunk_id in self._chunks]
        for chunk_id in known:
            chunk = self._chunks.pop(chunk_id)
            self._indexes[chunk.tenant].remove(chunk_id)
            self._of_document[chunk.document_id].discard(chunk_id)
            self._pending.pop(chunk_id, None)
            self._forget_text(chunk)
        points: list[models.ExtendedPointId] = [
            point_id(chunk_id) for chunk_id in known if self._vectors.pop(chunk_id, None) is not None
        ]
        if points:
            self._client.delete(_COLLECTION, models.PointIdsList(points=points))

    def _forget_text(self, chunk: Chunk) -> None:
        place = chunk.tenant, text_hash(chunk)
        same = self._of_text.get(place, set())
        same.discard(chunk.id)
        if not same:
            self._of_text.pop(place, None)

    def _count(self, scope: Scope) -> StoreCounts:
        visible = [chunk.id for chunk in self._chunks.values() if scope.allows(chunk)]
        documents = sum(scope.allows(document) for document in list(self._documents.values()))
        return StoreCounts(documents, len(visible), sum(name in self._pending for name in visible))

    def _list_documents(self, scope: Scope) -> list[Document]:
        visible = [replace(item, text="") for item in self._documents.values() if scope.allows(item)]
        return sorted(visible, key=lambda item: (item.source, item.id))

    def _list_chunks(self, document_id: str, scope: Scope) -> list[Chunk]:
        found = [self._chunks[chunk_id] for chunk_id in self._of_document.get(document_id, ())]
        return sorted(filter(scope.allows, found), key=lambda chunk: chunk.position)

    def _search_dense(self, vector: Vector, scope: Scope, limit: int) -> list[LegHit]:
        if self._profile is None:
            return []
        points = self._client.query_points(_COLLECTION, list(vector), query_filter=_filter(scope), limit=limit).points
        hits = [LegHit(self._chunks[(point.payload or {})["id"]], round(point.score, _DIGITS)) for point in points]
        return sorted(hits, key=lambda hit: (-hit.score, hit.chunk.id))

    def _search_bm25(self, terms: QueryTerms, scope: Scope, limit: int) -> list[LegHit]:
        index = self._indexes.get(scope.tenant)
        if index is None:
            return []
        allows = partial(_allows, scope, self._by_access)
        return [LegHit(self._chunks[key], score) for key, score in index.search(terms, limit, allows)]


def _allows(scope: Scope, examples: dict[object, Chunk], access: object) -> bool:
    return scope.allows(examples[access])


def _point(chunk: Chunk, vector: Vector) -> models.PointStruct:
    payload = {"id": chunk.id, **{name: list(values) for name, values in stored_access(chunk).items()}}
    return models.PointStruct(id=point_id(chunk.id), vector=list(vector), payload=payload)


def _filter(scope: Scope) -> models.Filter:
    conditions: list[models.Condition] = [
        models.FieldCondition(key=name, match=models.MatchAny(any=sorted(values)))
        for name, values in scope.conditions().items()
    ]
    return models.Filter(must=conditions)
