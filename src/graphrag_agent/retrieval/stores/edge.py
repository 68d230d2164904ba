"""The `embedded` store: two shards of the Qdrant engine in this process, in one folder.

The engine's own log is off (it takes 64 MB a shard), and with it the engine's lock: our lock file keeps a second
process out, and what was written is safe after `flush`.
"""

from __future__ import annotations

import asyncio
import shutil
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import qdrant_edge as edge

from graphrag_agent.documents import Chunk, Document
from graphrag_agent.retrieval.scope import Scope
from graphrag_agent.retrieval.stores import payload
from graphrag_agent.retrieval.stores.count_cache import CountCache
from graphrag_agent.retrieval.stores.folder_lock import FolderLock
from graphrag_agent.retrieval.stores.own_folder import CHUNKS, DOCUMENTS, refuse_foreign
from graphrag_agent.retrieval.stores.points import SPARSE, SparseTerms, passage_terms, point_id, query_terms
from graphrag_agent.retrieval.stores.port import ChunkRecord, LegHit, QueryTerms, StoreCounts, StoreProfile, Vector
from graphrag_agent.retrieval.stores.profile_file import load_profile, remove_profile, require_profile, save_profile
from graphrag_agent.retrieval.stores.writer_turns import WriterTurns

_DENSE = "dense"
_PAGE = 1000
_HAS_VECTOR = edge.HasVectorCondition(_DENSE)
_HASH_ONLY = edge.PayloadSelector.Include([payload.TEXT_HASH])


class EdgeStore:
    """A `ChunkStore` in a folder; one process at a time.

    Raises StoreLockedError when another has it, KnowledgeBaseError where its place is taken by files of somebody else.
    """

    def __init__(self, folder: Path) -> None:
        refuse_foreign(folder)
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = FolderLock(folder)
        try:
            self._folder = folder
            self._profile = load_profile(folder)
            self._chunks = _open_shard(folder / CHUNKS, (*payload.ACCESS_FIELDS, payload.TEXT_HASH))
            self._documents = _open_shard(folder / DOCUMENTS, payload.ACCESS_FIELDS)
            if self._profile is None:  # a kill may have left vectors that nobody knows the maker of
                self._chunks.update(edge.UpdateOperation.delete_vector_name(_DENSE))
        except BaseException:
            self._lock.release()
            raise
        self._is_open = True
        self._counted = CountCache()
        self.turns = WriterTurns()
        self._writing = threading.Lock()
        """Held where one write needs what another may change: the profile, or which chunks are stored."""

    async def profile(self) -> StoreProfile | None:
        return self._profile

    async def write_profile(self, profile: StoreProfile) -> None:
        await asyncio.to_thread(self._write_profile, profile)

    async def write_chunks(self, records: Sequence[ChunkRecord]) -> None:
        await asyncio.to_thread(self._write_chunks, records)

    async def write_vectors(self, vectors: Mapping[str, Vector], embedder: str) -> None:
        await asyncio.to_thread(self._write_vectors, vectors, embedder)

    async def drop_vectors(self) -> None:
        await asyncio.to_thread(self._drop_vectors)

    async def remove_chunks(self, chunk_ids: Sequence[str]) -> None:
        def remove() -> None:
            with self._writing:
                self._update(self._chunks, edge.UpdateOperation.delete_points([point_id(name) for name in chunk_ids]))

        await asyncio.to_thread(remove)

    async def vectors(self, chunk_ids: Sequence[str]) -> dict[str, Vector]:
        found = await asyncio.to_thread(self._stored_vectors, list(chunk_ids))
        return {name: vector for name, (vector, _) in found.items()}

    async def known_vectors(self, tenant: str, text_hashes: Sequence[str]) -> dict[str, Vector]:
        if not text_hashes or self._profile is None:
            return {}
        same = [_match("tenant", [tenant]), _match(payload.TEXT_HASH, list(text_hashes))]
        chosen = edge.Filter(must=[*same, edge.HasVectorCondition(_DENSE)])
        found = await asyncio.to_thread(lambda: list(_records(self._chunks, chosen, _HASH_ONLY, [_DENSE])))
        return {record.payload[payload.TEXT_HASH]: record.vector[_DENSE] for record in found}

    async def pending_chunks(self, limit: int) -> list[Chunk]:
        request = edge.ScrollRequest(limit=limit, filter=edge.Filter(must_not=[_HAS_VECTOR]), with_payload=True)
        records, _ = await asyncio.to_thread(self._chunks.scroll, request)
        return [payload.parse_chunk(record.payload or {}) for record in records]

    async def chunks(self, document_id: str, scope: Scope) -> list[Chunk]:
        narrow = scope.narrowed(document_ids=[document_id])
        found = [payload.parse_chunk(fields) for fields in await _read(self._chunks, narrow)]
        return sorted(found, key=lambda chunk: chunk.position)

    async def search_dense(self, vector: Vector, scope: Scope, limit: int) -> list[LegHit]:
        profile = self._profile
        if profile is None or scope.is_empty:
            return []
        try:
            return await self._search(list(vector), _DENSE, scope, limit)
        except Exception:
            if profile == self._profile:
                raise
            return []  # the vectors were dropped meanwhile

    async def search_bm25(self, terms: QueryTerms, scope: Scope, limit: int) -> list[LegHit]:
        if not terms or scope.is_empty:
            return []
        return await self._search(_sparse(query_terms(terms)), SPARSE, scope, limit)

    async def write_document(self, document: Document) -> None:
        point = edge.Point(point_id(document.id), {}, payload.document_payload(document))
        await asyncio.to_thread(self._update, self._documents, edge.UpdateOperation.upsert_points([point]))

    async def remove_document(self, document_id: str) -> None:
        operation = edge.UpdateOperation.delete_points([point_id(document_id)])
        await asyncio.to_thread(self._update, self._documents, operation)

    async def document(self, document_id: str, scope: Scope) -> Document | None:
        found = await _read(self._documents, scope.narrowed(document_ids=[document_id]))
        return payload.parse_document(found[0]) if found else None

    async def documents(self, scope: Scope) -> list[Document]:
        fields = edge.PayloadSelector.Exclude([f"{payload.BODY}.text"])
        found = await _read(self._documents, scope, fields)
        return await asyncio.to_thread(payload.parse_documents, found)

    async def content_hash(self, document_id: str) -> str | None:
        fields = edge.PayloadSelector.Include([f"{payload.BODY}.content_hash"])
        records = await asyncio.to_thread(self._documents.retrieve, [point_id(document_id)], fields, False)
        stored = records[0].payload if records else None
        return str(stored[payload.BODY]["content_hash"]) if stored else None

    async def chunk_ids(self, document_id: str) -> list[str]:
        chunk_filter = edge.Filter(must=[_match("document_id", [document_id])])
        fields = edge.PayloadSelector.Include([f"{payload.BODY}.id"])
        found = await asyncio.to_thread(lambda: list(_scroll(self._chunks, chunk_filter, fields)))
        return [item[payload.BODY]["id"] for item in found]

    async def counts(self, scope: Scope) -> StoreCounts:
        if scope.is_empty:
            return StoreCounts(documents=0, chunks=0, pending=0)
        return await asyncio.to_thread(self._counted.counts, scope, self._count)

    async def flush(self) -> None:
        await asyncio.to_thread(self._flush)

    async def aclose(self) -> None:
        await asyncio.to_thread(self.close)

    def close(self) -> None:
        """`aclose`, from any thread."""
        if self._is_open:
            self._is_open = False
            with ExitStack() as closing:  # each of them, though a full disk keeps one from it
                closing.callback(self._lock.release)
                closing.callback(self._documents.close)
                closing.callback(self._chunks.close)
                self._flush()

    def _flush(self) -> None:
        self._chunks.flush()
        self._documents.flush()

    def _update(self, shard: edge.EdgeShard, operation: edge.UpdateOperation) -> None:
        try:
            shard.update(operation)
        finally:
            self._counted.forget()

    def _write_profile(self, profile: StoreProfile) -> None:
        with self._writing:
            if self._profile is not None:
                require_profile(self._profile, profile.embedder)
                return
            vector = edge.UpdateOperation.create_dense_vector(_DENSE, profile.dimensions, edge.Distance.Cosine)
            self._chunks.update(vector)
            self._chunks.flush()
            save_profile(self._folder, profile)
            self._profile = profile

    def _drop_vectors(self) -> None:
        with self._writing:
            self._profile = None
            remove_profile(self._folder)  # first: vectors without it are dropped by the next open
            self._update(self._chunks, edge.UpdateOperation.delete_vector_name(_DENSE))
            self._chunks.flush()

    def _write_chunks(self, records: Sequence[ChunkRecord]) -> None:
        with self._writing:
            kept = self._stored_vectors([record.chunk.id for record in records if record.vector is None])
            points = []
            for record in records:
                vector, of_text = kept.get(record.chunk.id, (None, ""))
                is_same = vector is not None and of_text == payload.text_hash(record.chunk)
                points.append(_chunk_point(record._replace(vector=vector) if is_same else record))
            self._update(self._chunks, edge.UpdateOperation.upsert_points(points))

    def _write_vectors(self, vectors: Mapping[str, Vector], embedder: str) -> None:
        points = {point_id(name): vector for name, vector in vectors.items()}
        with self._writing:
            require_profile(self._profile, embedder)
            stored = [str(record.id) for record in self._chunks.retrieve(list(points), False, False)]
            fresh = [edge.PointVectors(name, {_DENSE: [float(value) for value in points[name]]}) for name in stored]
            if fresh:
                self._update(self._chunks, edge.UpdateOperation.update_vectors(fresh))

    def _stored_vectors(self, chunk_ids: Sequence[str]) -> dict[str, tuple[Vector, str]]:
        """Chunk id -> vector and text hash, for those of the ids that are stored with a vector."""
        if self._profile is None or not chunk_ids:
            return {}
        names = {point_id(name): name for name in chunk_ids}
        found: dict[str, tuple[Vector, str]] = {}
        for record in self._chunks.retrieve(list(names), _HASH_ONLY, [_DENSE]):
            vectors: Any = record.vector or {}
            if _DENSE in vectors:
                found[names[str(record.id)]] = vectors[_DENSE], str((record.payload or {}).get(payload.TEXT_HASH))
        return found

    def _count(self, scope: Scope) -> StoreCounts:
        chosen = edge.CountRequest(exact=True, filter=_filter(scope))
        pending = edge.CountRequest(exact=True, filter=edge.Filter(must=_conditions(scope), must_not=[_HAS_VECTOR]))
        return StoreCounts(
            documents=self._documents.count(chosen),
            chunks=self._chunks.count(chosen),
            pending=self._chunks.count(pending),
        )

    async def _search(self, query: Any, leg: str, scope: Scope, limit: int) -> list[LegHit]:
        tenant = edge.Filter(must=[_match("tenant", [scope.tenant])])
        request = edge.QueryRequest(
            limit=limit,
            query=edge.Query.Nearest(query, using=leg),
            filter=_filter(scope),
            with_payload=True,
            params=edge.SearchParams(idf=edge.IdfParams(corpus=tenant)) if leg == SPARSE else None,
        )
        points = await asyncio.to_thread(self._chunks.query, request)
        hits = [LegHit(payload.parse_chunk(point.payload or {}), point.score) for point in points]
        return sorted(hits, key=lambda hit: (-hit.score, hit.chunk.id))


def _open_shard(folder: Path, indexed: Sequence[str]) -> edge.EdgeShard:
    if not folder.exists():
        for half_made in folder.parent.glob(f"{folder.name}.*new"):  # left by a kill, for the folder's lock is ours
            shutil.rmtree(half_made)
        fresh = folder.with_name(f"{folder.name}.new")
        fresh.mkdir()
        sparse = {SPARSE: edge.EdgeSparseVectorParams(modifier=edge.Modifier.Idf)}
        shard = edge.EdgeShard.create(str(fresh), edge.EdgeConfig(sparse_vectors=sparse, wal_enabled=False))
        for name in indexed:
            schema = edge.KeywordIndexParams(is_tenant=name == "tenant")
            shard.update(edge.UpdateOperation.create_field_index(name, schema))
        shard.flush()
        shard.close()
        fresh.replace(folder)  # a shard that a kill left half made is never loaded
    shard = edge.EdgeShard.load(str(folder))
    for name in set(indexed).difference(shard.info().payload_schema):  # a folder from before the field was there
        shard.update(edge.UpdateOperation.create_field_index(name, edge.KeywordIndexParams()))
    return shard


async def _read(shard: edge.EdgeShard, scope: Scope, fields: Any = True) -> list[dict[str, Any]]:
    if scope.is_empty:
        return []
    return await asyncio.to_thread(lambda: list(_scroll(shard, _filter(scope), fields)))


def _scroll(shard: edge.EdgeShard, chosen: edge.Filter, fields: Any) -> Iterator[dict[str, Any]]:
    for record in _records(shard, chosen, fields, vectors=False):
        yield record.payload or {}


def _records(shard: edge.EdgeShard, chosen: edge.Filter, fields: Any, vectors: Any) -> Iterator[Any]:
    offset = None
    while True:
        request = edge.ScrollRequest(
            offset=offset, limit=_PAGE, filter=chosen, with_payload=fields, with_vector=vectors
        )
        records, offset = shard.scroll(request)
        yield from records
        if offset is None:
            return


def _filter(scope: Scope) -> edge.Filter:
    return edge.Filter(must=_conditions(scope))


def _conditions(scope: Scope) -> list[Any]:
    return [_match(name, sorted(values)) for name, values in scope.conditions().items()]


def _match(field: str, values: list[str]) -> edge.FieldCondition:
    return edge.FieldCondition(key=field, match=edge.MatchAny(values))


def _chunk_point(record: ChunkRecord) -> edge.Point:
    vectors: dict[str, Any] = {}
    if record.terms:
        vectors[SPARSE] = _sparse(passage_terms(record.terms))
    if record.vector is not None:
        vectors[_DENSE] = [float(value) for value in record.vector]
    return edge.Point(point_id(record.chunk.id), vectors, payload.chunk_payload(record.chunk))


def _sparse(terms: SparseTerms) -> edge.SparseVector:
    return edge.SparseVector(terms.indices, terms.values)
