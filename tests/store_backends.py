"""Every backend of the store port, for tests: `server` over the loopback shim, `live` where QDRANT_URL is set."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from qdrant_client import QdrantClient

from graphrag_agent.retrieval.stores.edge import EdgeStore
from graphrag_agent.retrieval.stores.memory import MemoryStore
from graphrag_agent.retrieval.stores.port import ChunkStore
from graphrag_agent.retrieval.stores.server import ServerStore
from graphrag_agent.retrieval.stores.server_address import QdrantServer
from graphrag_agent.sync_edge import run_sync
from tests.qdrant_shim import QdrantShim

LIVE_URL, LIVE_KEY = os.environ.get("QDRANT_URL"), os.environ.get("QDRANT_API_KEY")
live = pytest.mark.skipif(not LIVE_URL, reason="no live Qdrant server: set QDRANT_URL (and QDRANT_API_KEY)")
BACKENDS: list[Any] = ["memory", "embedded", "server", pytest.param("live", marks=live)]


@contextmanager
def opened_store(backend: str, folder: Path) -> Iterator[ChunkStore]:
    """Closed by the test or here. What the client's models refuse in a request to the shim fails the test."""
    if backend == "memory":
        yield from _closed(MemoryStore())
    elif backend == "embedded":
        yield from _closed(EdgeStore(folder / "kb"))
    elif backend == "server":
        with QdrantShim(folder / "server") as shim:
            yield from _closed(ServerStore(QdrantServer(shim.base_url)))
        assert not shim.invalid, shim.invalid
    else:
        yield from _live()


def _live() -> Iterator[ChunkStore]:
    server = QdrantServer(str(LIVE_URL), api_key=LIVE_KEY, prefix=f"graphrag-test-{uuid.uuid4().hex[:8]}")
    try:
        yield from _closed(ServerStore(server))
    finally:
        client = QdrantClient(url=server.url, api_key=LIVE_KEY)
        for name in ("chunks", "documents"):
            client.delete_collection(f"{server.prefix}_{name}")
        client.close()


def _closed(store: ChunkStore) -> Iterator[ChunkStore]:
    try:
        yield store
    finally:
        run_sync(store.aclose())  # also where a loop runs
