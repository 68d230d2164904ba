"""The `memory` store: vectors in qdrant-client's local mode, BM25 beside it; gone with the process."""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from qdrant_client import QdrantClient, models

from graphrag_agent.documents import Chunk, Document
from graphrag_agent.retrieval.scope import Scope, stored_access
from graphrag_agent.retrieval.stores.bm25 import BM25Index
from graphrag_agent.retrieval.stores.port import ChunkRecord, LegHit, StoreCounts, StoreProfile, Terms, Vector

T = TypeVar("T")
_COLLECTION = "chunks"
_ID_NAMESPACE = uuid.UUID("6f2f0f62-5a0d-4a5e-9c0d-2f0c2a6c7b11")


class MemoryStore:
    """A `ChunkStore` for notebooks, tests and machines without an edge wheel."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # local mode breaks under concurrent calls
        self._client = QdrantClient(":memory:")
        self._profile: StoreProfile | None = None
        self._chunks: dict[str, Chunk] = {}
        self._of_document: defaultdict[str, set[str]] = defaultdict(set)
        self._vectors: dict[str, Vector] = {}
        self._documents: dict[str, Document] = {}
        self._indexes: dict[str, BM25Index] = {}
        self._by_access: dict[object, Chunk] = {}

    async def profile(self) -> StoreProfile | None:
        return self._profile

    async def write_profile(self, profile: StoreProfile) -> None:
        await self._locked(self._create_collection, profile)

    async def write_chunks(self, records: Sequence[ChunkRecord]) -> None:
        await self._locked(self._write_chunks, list(records))

    async def remove_chunks(self, chunk_ids: Sequence[str]) -> None:
        await self._locked(self._remove_chunks, list(chunk_ids))

    async def vectors(self, chunk_ids: Sequence[str]) -> dict[str, Vector]:
        return {chunk_id: self._vectors[chunk_id] for chunk_id in chunk_ids if chunk_id in self._vectors}

    async def chunks(self, document_id: str, scope: Scope) -> list[Chunk]:
        return await self._locked(self._list_chunks, document_id, scope)

    async def search_dense(self, vector: Vector, scope: Scope, limit: int) -> list[LegHit]:
        return [] if scope.is_empty else await self._locked(self._search_dense, vector, scope, limit)

    async def search_bm25(self, terms: Terms, scope: Scope, limit: int) -> list[LegHit]:
        return [] if scope.is_empty else await self._locked(self._search_bm25, terms, scope, limit)

    async def write_document(self, document: Document) -> None:
        self._documents[document.id] = document

    async def remove_document(self, document_id: str) -> None:
        self._documents.pop(document_id, None)

    async def document(self, document_id: str, scope: Scope) -> Document | None:
        document = self._documents.get(document_id)
        return document if document and scope.allows(document) else None

    async def documents(self, scope: Scope) -> list[Document]:
        visible = [replace(item, text="") for item in list(self._documents.values()) if scope.allows(item)]
        return sorted(visible, key=lambda item: (item.source, item.id))

    async def content_hash(self, document_id: str) -> str | None:
        document = self._documents.get(document_id)
        return document.content_hash if document else None

    async def chunk_ids(self, document_id: str) -> list[str]:
        return list(self._of_document.get(document_id, ()))

    async def counts(self, scope: Scope) -> StoreCounts:
        chunks = sum(scope.allows(chunk) for chunk in list(self._chunks.values()))
        return StoreCounts(documents=len(await self.documents(scope)), chunks=chunks)

    async def flush(self) -> None:
        return None

    async def aclose(self) -> None:
        await self._locked(self._client.close)

    async def _locked(self, call: Callable[..., T], *args: Any) -> T:
        def run() -> T:
            with self._lock:
                return call(*args)

        return await asyncio.to_thread(run)

    def _write_chunks(self, records: list[ChunkRecord]) -> None:
        self._remove_chunks([record.chunk.id for record in records])
        for chunk, terms, vector in records:
            access = tuple(stored_access(chunk).items())
            self._by_access.setdefault(access, chunk)
            self._chunks[chunk.id] = chunk
            self._of_document[chunk.document_id].add(chunk.id)
            self._indexes.setdefault(chunk.tenant, BM25Index()).add(chunk.id, terms, access)
            if vector is not None:
                self._vectors[chunk.id] = vector
        points = [_point(record.chunk, record.vector) for record in records if record.vector is not None]
        if points:
            self._client.upsert(_COLLECTION, points)

    def _create_collection(self, profile: StoreProfile) -> None:
        if self._profile is None:
            vectors = models.VectorParams(size=profile.dimensions, distance=models.Distance.COSINE)
            self._client.create_collection(_COLLECTION, vectors_config=vectors)
        self._profile = profile

    def _remove_chunks(self, chunk_ids: list[str]) -> None:
        known = [chunk_id for chunk_id in dict.fromkeys(chunk_ids) if chunk_id in self._chunks]
        for chunk_id in known:
            chunk = self._chunks.pop(chunk_id)
            self._indexes[chunk.tenant].remove(chunk_id)
            self._of_document[chunk.document_id].discard(chunk_id)
        points: list[models.ExtendedPointId] = [
            _point_id(chunk_id) for chunk_id in known if self._vectors.pop(chunk_id, None) is not None
        ]
        if points:
            self._client.delete(_COLLECTION, models.PointIdsList(points=points))

    def _list_chunks(self, document_id: str, scope: Scope) -> list[Chunk]:
        found = [self._chunks[chunk_id] for chunk_id in self._of_document.get(document_id, ())]
        return sorted(filter(scope.allows, found), key=lambda chunk: chunk.position)

    def _search_dense(self, vector: Vector, scope: Scope, limit: int) -> list[LegHit]:
        if self._profile is None:
            return []
        points = self._client.query_points(_COLLECTION, list(vector), query_filter=_filter(scope), limit=limit).points
        hits = [LegHit(self._chunks[(point.payload or {})["id"]], point.score) for point in points]
        return sorted(hits, key=lambda hit: (-hit.score, hit.chunk.id))

    def _search_bm25(self, terms: Terms, scope: Scope, limit: int) -> list[LegHit]:
        index = self._indexes.get(scope.tenant)
        if index is None:
            return []
        allows = partial(_allows, scope, self._by_access)
        return [LegHit(self._chunks[key], score) for key, score in index.search(terms, limit, allows)]


def _allows(scope: Scope, examples: dict[object, Chunk], access: object) -> bool:
    return scope.allows(examples[access])


def _point_id(chunk_id: str) -> str:
    return str(uuid.uuid5(_ID_NAMESPACE, chunk_id))


def _point(chunk: Chunk, vector: Vector) -> models.PointStruct:
    payload = {"id": chunk.id, **{name: list(values) for name, values in stored_access(chunk).items()}}
    return models.PointStruct(id=_point_id(chunk.id), vector=list(vector), payload=payload)


def _filter(scope: Scope) -> models.Filter:
    conditions: list[models.Condition] = [
        models.FieldCondition(key=name, match=models.MatchAny(any=sorted(values)))
        for name, values in scope.conditions().items()
    ]
    return models.Filter(must=conditions)
