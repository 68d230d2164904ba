"""The `server` store: a Qdrant server or cluster, whose collections several processes may write at once."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, cast

from qdrant_client import models

from graphrag_agent.documents import Chunk, Document
from graphrag_agent.errors import KnowledgeBaseError
from graphrag_agent.retrieval.scope import Scope
from graphrag_agent.retrieval.stores import payload
from graphrag_agent.retrieval.stores.points import SPARSE, SparseTerms, passage_terms, point_id, query_terms
from graphrag_agent.retrieval.stores.port import ChunkRecord, LegHit, QueryTerms, StoreCounts, StoreProfile, Vector
from graphrag_agent.retrieval.stores.profile_file import require_profile
from graphrag_agent.retrieval.stores.server_address import QdrantServer, parse_address
from graphrag_agent.retrieval.stores.server_calls import RefusedRequestError, ServerCalls
from graphrag_agent.retrieval.stores.server_collections import PROFILE_POINT, ServerCollections, vector_name
from graphrag_agent.retrieval.stores.server_counts import RecentCounts
from graphrag_agent.retrieval.stores.server_points import ServerPoints, match, scope_filter
from graphrag_agent.retrieval.stores.writer_turns import shared_turns

_HASHES_A_QUERY = 500


class ServerStore:
    """A `ChunkStore` on a Qdrant server. Nothing is asked of the server, or made there, before it is needed.

    Every write waits until it is applied, so that the next read sees it. Raises KnowledgeBaseError where the server
    doesn't answer or refuses.
    """

    def __init__(self, server: QdrantServer, *, calls: ServerCalls | None = None) -> None:
        self._calls = calls or ServerCalls(server)
        self._collections = ServerCollections(self._calls, server)
        self.turns = shared_turns((parse_address(server).url, server.prefix))
        ordering = models.WriteOrdering(server.write_ordering)
        self._chunks = ServerPoints(self._calls, self._collections.chunks, ordering)
        self._documents = ServerPoints(self._calls, self._collections.documents, ordering)
        self._counts = RecentCounts(self._calls)

    async def profile(self) -> StoreProfile | None:
        return await self._collections.profile()

    async def write_profile(self, profile: StoreProfile) -> None:
        await self._collections.write_profile(profile)

    async def write_chunks(self, records: Sequence[ChunkRecord]) -> None:
        await self._collections.make()
        profile = await self._collections.current_profile()
        kept = await self._kept(profile, [record.chunk for record in records if record.vector is None])
        await self._chunks.upsert([_chunk_point(record, profile, kept.get(record.chunk.id)) for record in records])

    async def write_vectors(self, vectors: Mapping[str, Vector], embedder: str) -> None:
        try:
            await self._write_vectors(vectors, embedder)
        except RefusedRequestError:  # a chunk or the vectors went meanwhile; if it is neither, the next try raises
            profile = await self._collections.current_profile()
            if profile is not None and profile.embedder == embedder:
                await self._collections.write_profile(profile)
            await self._write_vectors(vectors, embedder)

    async def drop_vectors(self) -> None:
        await self._collections.drop_profile()

    async def remove_chunks(self, chunk_ids: Sequence[str]) -> None:
        await self._chunks.delete([point_id(name) for name in chunk_ids])

    async def vectors(self, chunk_ids: Sequence[str]) -> dict[str, Vector]:
        names = {point_id(name): name for name in chunk_ids}
        found = await self._vectors(await self._collections.current_profile(), list(names))
        return {names[point]: vector for point, (vector, _) in found.items()}

    async def known_vectors(self, tenant: str, text_hashes: Sequence[str]) -> dict[str, Vector]:
        profile = await self._collections.current_profile()
        if profile is None:
            return {}
        name = vector_name(profile)
        known: dict[str, Vector] = {}
        for at in range(0, len(text_hashes), _HASHES_A_QUERY):
            same = match("tenant", [tenant]), match(payload.TEXT_HASH, text_hashes[at : at + _HASHES_A_QUERY])
            chosen = models.Filter(must=[*same, models.HasVectorCondition(has_vector=name)])
            async for record in self._chunks.scroll(chosen, fields=[payload.TEXT_HASH], vectors=[name]):
                known[_fields(record)[payload.TEXT_HASH]] = _vector(record, name)
        return known

    async def pending_chunks(self, limit: int) -> list[Chunk]:
        done: list[models.Condition] = [models.HasIdCondition(has_id=[PROFILE_POINT])]
        if profile := await self._collections.current_profile():
            done.append(models.HasVectorCondition(has_vector=vector_name(profile)))
        records = await self._chunks.first(models.Filter(must_not=done), limit)
        return [payload.parse_chunk(_fields(record)) for record in records]

    async def chunks(self, document_id: str, scope: Scope) -> list[Chunk]:
        found = await _read(self._chunks, scope.narrowed(document_ids=[document_id]))
        return sorted(map(payload.parse_chunk, found), key=lambda chunk: chunk.position)

    async def search_dense(self, vector: Vector, scope: Scope, limit: int) -> list[LegHit]:
        profile = None if scope.is_empty else await self._collections.profile()
        if profile is None:
            return []
        try:
            return await self._search([float(value) for value in vector], vector_name(profile), scope, limit)
        except RefusedRequestError:
            if profile == await self._collections.current_profile():
                raise
            return []  # the vectors were dropped meanwhile

    async def search_bm25(self, terms: QueryTerms, scope: Scope, limit: int) -> list[LegHit]:
        if not terms or scope.is_empty:
            return []
        corpus = models.IdfCorpusParams(corpus=models.Filter(must=[match("tenant", [scope.tenant])]))
        return await self._search(_sparse(query_terms(terms)), SPARSE, scope, limit, models.SearchParams(idf=corpus))

    async def write_document(self, document: Document) -> None:
        await self._collections.make()
        fields = payload.document_payload(document)
        await self._documents.upsert([models.PointStruct(id=point_id(document.id), vector={}, payload=fields)])

    async def remove_document(self, document_id: str) -> None:
        await self._documents.delete([point_id(document_id)])

    async def document(self, document_id: str, scope: Scope) -> Document | None:
        found = await _read(self._documents, scope.narrowed(document_ids=[document_id]))
        return payload.parse_document(found[0]) if found else None

    async def documents(self, scope: Scope) -> list[Document]:
        fields = models.PayloadSelectorExclude(exclude=[f"{payload.BODY}.text"])
        found = await _read(self._documents, scope, fields)
        return await asyncio.to_thread(payload.parse_documents, found)

    async def content_hash(self, document_id: str) -> str | None:
        found = await self._documents.retrieve([point_id(document_id)], fields=[f"{payload.BODY}.content_hash"])
        return str(_fields(found[0])[payload.BODY]["content_hash"]) if found else None

    async def chunk_ids(self, document_id: str) -> list[str]:
        chosen = models.Filter(must=[match("document_id", [document_id])])
        found = self._chunks.scroll(chosen, fields=[f"{payload.BODY}.id"])
        return [str(_fields(record)[payload.BODY]["id"]) async for record in found]

    async def counts(self, scope: Scope) -> StoreCounts:
        if scope.is_empty:
            return StoreCounts(documents=0, chunks=0, pending=0)
        return await self._counts.get(scope, self._count)

    async def flush(self) -> None:
        """Nothing to do: every write has waited for the server."""

    async def aclose(self) -> None:
        await self._calls.aclose()

    async def _count(self, scope: Scope) -> StoreCounts:
        profile, chosen = await self._collections.profile(), scope_filter(scope)
        documents, chunks = await asyncio.gather(self._documents.count(chosen), self._chunks.count(chosen))
        if profile is None:
            return StoreCounts(documents, chunks, pending=chunks)
        done = models.HasVectorCondition(has_vector=vector_name(profile))
        return StoreCounts(documents, chunks, await self._chunks.count(scope_filter(scope, without=done)))

    async def _search(
        self, query: Any, leg: str, scope: Scope, limit: int, how: models.SearchParams | None = None
    ) -> list[LegHit]:
        chosen = scope_filter(scope)
        found = await self._chunks.query(query=query, using=leg, query_filter=chosen, limit=limit, search_params=how)
        hits = [LegHit(payload.parse_chunk(point.payload or {}), point.score) for point in found]
        return sorted(hits, key=lambda hit: (-hit.score, hit.chunk.id))

    async def _kept(self, profile: StoreProfile | None, chunks: Sequence[Chunk]) -> dict[str, list[float]]:
        """Chunk id -> stored vector, where the text it was made of is still the chunk's."""
        stored = await self._vectors(profile, [point_id(chunk.id) for chunk in chunks])
        found = [(chunk, *stored.get(point_id(chunk.id), ([], None))) for chunk in chunks]
        return {chunk.id: vector for chunk, vector, made_of in found if made_of == payload.text_hash(chunk)}

    async def _vectors(
        self, profile: StoreProfile | None, points: Sequence[str]
    ) -> dict[str, tuple[list[float], str | None]]:
        """Point -> vector and text hash, for those of the points that have a vector."""
        if profile is None:
            return {}
        name = vector_name(profile)
        records = await self._chunks.retrieve(points, fields=[payload.TEXT_HASH], vectors=[name])
        having = [record for record in records if name in (record.vector or {})]
        return {str(record.id): (_vector(record, name), _fields(record).get(payload.TEXT_HASH)) for record in having}

    async def _write_vectors(self, vectors: Mapping[str, Vector], embedder: str) -> None:
        profile = await self._collections.current_profile()
        require_profile(profile, embedder)
        name = vector_name(cast(StoreProfile, profile))
        points = {point_id(chunk_id): [float(value) for value in vector] for chunk_id, vector in vectors.items()}
        stored = await self._chunks.retrieve(list(points), fields=False)
        await self._chunks.update_vectors(
            [models.PointVectors(id=record.id, vector={name: points[str(record.id)]}) for record in stored]
        )


async def _read(points: ServerPoints, scope: Scope, fields: Any = True) -> list[dict[str, Any]]:
    if scope.is_empty:
        return []
    return [_fields(record) async for record in points.scroll(scope_filter(scope), fields=fields)]


def _chunk_point(record: ChunkRecord, profile: StoreProfile | None, kept: list[float] | None) -> models.PointStruct:
    vectors: dict[str, Any] = {}
    if record.terms:
        vectors[SPARSE] = _sparse(passage_terms(record.terms))
    vector = kept if record.vector is None else [float(value) for value in record.vector]
    if vector is not None:
        if profile is None:
            raise KnowledgeBaseError("a vector of unknown making can't be stored: write the profile first")
        vectors[vector_name(profile)] = vector
    return models.PointStruct(id=point_id(record.chunk.id), vector=vectors, payload=payload.chunk_payload(record.chunk))


def _sparse(terms: SparseTerms) -> models.SparseVector:
    return models.SparseVector(indices=terms.indices, values=terms.values)


def _fields(record: models.Record) -> dict[str, Any]:
    return record.payload or {}


def _vector(record: models.Record, name: str) -> list[float]:
    vectors: Any = record.vector
    return list(vectors[name])
