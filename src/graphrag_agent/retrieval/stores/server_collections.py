"""The two collections of a knowledge base on a Qdrant server: how they are made, and whose vectors they hold.

Every embedder's vectors have a name of their own, so that a process which hasn't heard of a change can neither find nor
add vectors that can't be compared. A reserved point says which embedder counts; it has no tenant, so no scope sees it.
"""

from __future__ import annotations

import hashlib
import time
import uuid
from collections.abc import Callable
from functools import partial
from typing import Any

from qdrant_client import AsyncQdrantClient, models

from graphrag_agent.errors import KnowledgeBaseError
from graphrag_agent.retrieval.stores import payload
from graphrag_agent.retrieval.stores.points import SPARSE
from graphrag_agent.retrieval.stores.port import StoreProfile
from graphrag_agent.retrieval.stores.profile_file import require_profile
from graphrag_agent.retrieval.stores.server_address import QdrantServer
from graphrag_agent.retrieval.stores.server_calls import RefusedRequestError, ServerCalls, ServerDownError

PROFILE_POINT = str(uuid.UUID("0d7f2f6e-93a5-4c5e-8a53-5f0b8f5e7a01"))
"""Lies among the chunks: a search then needs one collection only."""
_PROFILE = "profile"
_TRUSTED_SECONDS = 5.0
"""How long a profile is taken for the current one; a search should not ask for it each time."""
_TENANT_LINKS = 16
"""Links of a vector within its tenant, the engine's usual number; there are none across tenants."""


class ServerCollections:
    """Names, creation and profile of the collections."""

    def __init__(
        self, calls: ServerCalls, server: QdrantServer, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.chunks, self.documents = f"{server.prefix}_chunks", f"{server.prefix}_documents"
        self._calls, self._server, self._clock = calls, server, clock
        self._is_made = False
        self._profile: StoreProfile | None = None
        self._profile_until = -1.0

    async def make(self) -> None:
        """Both collections with their indexes, where they aren't there yet. Two processes may do it at once."""
        if not self._is_made:
            await self._make(self.chunks, (*payload.ACCESS_FIELDS, payload.TEXT_HASH))
            await self._make(self.documents, payload.ACCESS_FIELDS)
            self._is_made = True

    async def profile(self) -> StoreProfile | None:
        """What the vectors were made with, as of a few seconds ago, or longer if the server is down."""
        if self._clock() >= self._profile_until:
            try:
                await self.current_profile()
            except ServerDownError:
                if self._profile is None:
                    raise
        return self._profile

    async def current_profile(self) -> StoreProfile | None:
        """What the vectors are made with now."""
        seconds = self._calls.server_seconds
        found = await self._calls.read(lambda client: client.retrieve(self.chunks, [PROFILE_POINT], timeout=seconds))
        self._profile = _parse(found[0].payload or {}) if found else None
        self._profile_until = self._clock() + _TRUSTED_SECONDS
        return self._profile

    async def write_profile(self, profile: StoreProfile) -> None:
        """The first writer's counts. Raises EmbedderMismatchError for another one's."""
        await self.make()
        await self._make_vector(profile)  # first, so that the profile never names vectors that aren't there
        point = models.PointStruct(id=PROFILE_POINT, vector={}, payload={_PROFILE: profile._asdict()})
        strong, first = models.WriteOrdering.STRONG, models.UpdateMode.INSERT_ONLY
        await self._calls.write(lambda client: client.upsert(self.chunks, [point], ordering=strong, update_mode=first))
        stored = await self.current_profile()
        require_profile(stored, profile.embedder)
        if stored is not None and stored != profile:
            raise KnowledgeBaseError(
                f"the embedder {profile.embedder!r} gives {profile.dimensions} numbers a vector, but those stored have "
                f"{stored.dimensions}: give it another identity, or use another prefix"
            )

    async def drop_profile(self) -> None:
        """Forget the vectors and whose they were; those that a kill leaves behind have a name nobody asks for."""
        profile = await self.current_profile()
        if profile is None:
            return
        gone = models.PointIdsList(points=[PROFILE_POINT])
        strong = models.WriteOrdering.STRONG
        await self._calls.write(lambda client: client.delete(self.chunks, gone, ordering=strong))
        self._profile_until = -1.0
        await self._calls.write(lambda client: client.delete_vector_name(self.chunks, vector_name(profile)))

    async def _make_vector(self, profile: StoreProfile) -> None:
        name = vector_name(profile)
        shape = models.DenseVectorConfig(size=profile.dimensions, distance=models.Distance.COSINE)
        config = models.DenseVectorNameConfig(dense=shape)
        try:
            await self._calls.write(lambda client: client.create_vector_name(self.chunks, name, config))
        except RefusedRequestError:
            info = await self._calls.read(lambda client: client.get_collection(self.chunks))
            vectors = info.config.params.vectors if info else None
            if not isinstance(vectors, dict) or name not in vectors:
                raise

    async def _make(self, name: str, indexed: tuple[str, ...]) -> None:
        present = await self._indexes(name)
        if present is None:
            await self._create(name)
            present = await self._indexes(name) or frozenset()
        for field in indexed:
            if field not in present:
                await self._calls.write(partial(_create_index, name, field))

    async def _indexes(self, name: str) -> frozenset[str] | None:
        """Fields of the collection that have an index; None where there is no such collection."""
        info = await self._calls.read(lambda client: client.get_collection(name))
        return None if info is None else frozenset(info.payload_schema)

    async def _create(self, name: str) -> None:
        server = self._server
        try:
            await self._calls.write(
                lambda client: client.create_collection(
                    name,
                    sparse_vectors_config={SPARSE: models.SparseVectorParams(modifier=models.Modifier.IDF)},
                    shard_number=server.shards,
                    replication_factor=server.replicas,
                    write_consistency_factor=server.write_consistency,
                    hnsw_config=models.HnswConfigDiff(m=0, payload_m=_TENANT_LINKS),
                )
            )
        except RefusedRequestError:
            if await self._indexes(name) is None:  # else another process was faster, or a reply got lost
                raise


def vector_name(profile: StoreProfile) -> str:
    """The name of the vectors that were made so."""
    made = f"{profile.embedder}\n{profile.dimensions}"
    return f"dense_{hashlib.sha256(made.encode()).hexdigest()[:12]}"


async def _create_index(collection: str, field: str, client: AsyncQdrantClient) -> None:
    keyword, is_tenant = models.KeywordIndexType.KEYWORD, field == "tenant"
    schema = models.KeywordIndexParams(type=keyword, is_tenant=is_tenant, enable_hnsw=is_tenant)
    await client.create_payload_index(collection, field, schema)


def _parse(fields: dict[str, Any]) -> StoreProfile:
    try:
        stored = fields[_PROFILE]
        return StoreProfile(embedder=str(stored["embedder"]), dimensions=int(stored["dimensions"]))
    except (KeyError, TypeError, ValueError):
        raise KnowledgeBaseError(
            "the server's collection is of another make: set another GRAPHRAG_QDRANT_PREFIX"
        ) from None
