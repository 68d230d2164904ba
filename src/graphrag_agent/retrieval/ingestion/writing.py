"""Prepared documents into the store, many at a time, so that a kill at any moment can be mended.

A document's old record is first made unfinished and its new record is written last, after its chunks are safe: whatever
is half done has no finished record, so the next ingest does it again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress

from graphrag_agent.retrieval.ingestion.preparation import PreparedDocument, unfinished
from graphrag_agent.retrieval.stores.port import ChunkStore

MOST_WAITING_CHUNKS = 2048
"""Chunks that wait while others are written; then who reads files must wait too."""
BATCH_CHUNKS = 512
"""Chunks worth two flushes: on a busy disk each takes as long as reading a hundred chunks."""
BATCH_SECONDS = 0.5
"""How long what has come waits for more, so that a slow file doesn't keep the others from being found."""
_MOST_FAILURES = 3
"""Documents that fail one after the other, each written alone, before the store is taken to be at fault."""

Written = Callable[[PreparedDocument, Exception | None], None]
"""Told what has become of each document."""


class Inbox:
    """What is to be written. Whoever brings a document waits while too much lies here."""

    def __init__(self) -> None:
        self._items: list[PreparedDocument] = []
        self._chunks = 0
        self._is_closed = False
        self._changed = asyncio.Condition()

    async def put(self, prepared: PreparedDocument) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: self._chunks < MOST_WAITING_CHUNKS)
            self._items.append(prepared)
            self._chunks += len(prepared.records)
            self._changed.notify_all()

    async def close(self) -> None:
        """Nothing more will come."""
        async with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    async def take(self) -> list[PreparedDocument]:
        """All that has come since the last call, a good batch if that is quick; empty after `close`."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._items or self._is_closed)
            with suppress(TimeoutError):
                async with asyncio.timeout(BATCH_SECONDS):
                    await self._changed.wait_for(lambda: self._chunks >= BATCH_CHUNKS or self._is_closed)
            taken, self._items, self._chunks = self._items, [], 0
            self._changed.notify_all()
            return taken


async def write_all(store: ChunkStore, inbox: Inbox, written: Written) -> None:
    """Write what comes, until the inbox is closed and empty. When it is cancelled, the batch at hand is finished."""
    while batch := await inbox.take():
        await _write_batch(store, batch, written)


async def _write_batch(store: ChunkStore, batch: Sequence[PreparedDocument], written: Written) -> None:
    """Together if it goes; else one by one, so that only what is at fault is left out."""
    error = await _try_to_write(store, batch)
    if error is None or len(batch) == 1:
        for prepared in batch:
            written(prepared, error)
        return
    failures = 0
    for prepared in batch:
        if failures < _MOST_FAILURES:
            error = await _try_to_write(store, [prepared])
            failures = failures + 1 if error else 0
        written(prepared, error)


async def _try_to_write(store: ChunkStore, batch: Sequence[PreparedDocument]) -> Exception | None:
    try:
        await store.turns.take(lambda: _write(store, batch))
    except Exception as error:
        return error
    return None


async def _write(store: ChunkStore, batch: Sequence[PreparedDocument]) -> None:
    recorded = [item.document for item in batch if await store.content_hash(item.document.id) is not None]
    for document in recorded:
        await store.write_document(unfinished(document))
    if recorded:
        await store.flush()
    await store.write_chunks([record for prepared in batch for record in prepared.records])
    await store.flush()
    for prepared in batch:
        await _keep_only(store, prepared)
        await store.write_document(prepared.document)
    await store.flush()


async def _keep_only(store: ChunkStore, prepared: PreparedDocument) -> None:
    """The document's chunks are these alone: old ones go, and so does what another process did to them meanwhile."""
    stored = set(await store.chunk_ids(prepared.document.id))
    gone = stored.difference(record.chunk.id for record in prepared.records)
    if gone:
        await store.remove_chunks(sorted(gone))
    missing = [record for record in prepared.records if record.chunk.id not in stored]
    if missing:
        await store.write_chunks(missing)
