"""From paths to stored chunks: idempotent, and a kill at any moment is mended by the next ingest.

`ingest` is the entry. A document's old record goes first and its new record is written last, after its chunks are
safe: whatever is half done has no record, so it is done again. Vectors come later (`embedding`); the store keeps those
of chunks that are written again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from graphrag_agent.documents import Chunk
from graphrag_agent.retrieval.ingestion.parsing import find_files
from graphrag_agent.retrieval.ingestion.preparation import (
    IngestTarget,
    PreparedDocument,
    content_hash,
    document_id,
    prepare_document,
)
from graphrag_agent.retrieval.stores.port import ChunkRecord, ChunkStore
from graphrag_agent.retrieval.tokenizer import count_terms

Progress = Callable[[int, int, str], None]
"""Called with files done, files in all, and the file that was just done."""

_BATCH_CHUNKS = 32
"""Chunks written together: few enough that progress shows."""


class FailedFile(NamedTuple):
    """A file that was left out, and why."""

    path: str
    error: str


@dataclass(frozen=True, slots=True)
class IngestReport:
    """What one ingest did."""

    documents: int
    """Written now: new or changed."""
    chunks: int
    """Chunks of the documents written now."""
    unchanged: int
    """Documents left alone."""
    failed: tuple[FailedFile, ...] = ()
    pending: int = 0
    """Chunks in this tenant, collection and groups that have no vector yet."""
    embedding_problem: str | None = None
    """Why they have none, where it isn't that nobody has waited."""


class _Tally:
    """What has become of the files so far."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self.total = total
        self.progress = progress
        self.written: list[PreparedDocument] = []
        self.unchanged = 0
        self.failed: list[FailedFile] = []

    def keep(self, path: Path) -> None:
        self.unchanged += 1
        self._tell(path)

    def fail(self, path: Path, error: Exception) -> None:
        self.failed.append(FailedFile(str(path), str(error) or type(error).__name__))
        self._tell(path)

    def write(self, prepared: PreparedDocument) -> None:
        self.written.append(prepared)
        self._tell(prepared.path)

    def report(self) -> IngestReport:
        chunks = sum(len(prepared.chunks) for prepared in self.written)
        return IngestReport(len(self.written), chunks, self.unchanged, tuple(self.failed))

    def _tell(self, path: Path) -> None:
        if self.progress:
            self.progress(len(self.written) + self.unchanged + len(self.failed), self.total, path.name)


async def ingest(
    store: ChunkStore, paths: Iterable[str | Path], target: IngestTarget, progress: Progress | None = None
) -> IngestReport:
    """Bring the store to what the files say, without vectors. A file that fails is reported and the others go on."""
    files = await asyncio.to_thread(find_files, paths)
    tally = _Tally(len(files), progress)
    waiting: list[PreparedDocument] = []
    for path in files:
        try:
            prepared = await _prepare(store, path, target)
        except Exception as error:
            tally.fail(path, error)
            continue
        if prepared is None:
            tally.keep(path)
            continue
        waiting.append(prepared)
        if sum(len(item.chunks) for item in waiting) >= _BATCH_CHUNKS:
            await _write_batch(store, waiting, tally)
            waiting = []
    if waiting:
        await _write_batch(store, waiting, tally)
    return tally.report()


async def _prepare(store: ChunkStore, path: Path, target: IngestTarget) -> PreparedDocument | None:
    """None when the store has the file as it is."""
    made_from = await asyncio.to_thread(content_hash, path, target)
    if made_from == await store.content_hash(await asyncio.to_thread(document_id, path, target)):
        return None
    return await asyncio.to_thread(prepare_document, path, target, made_from)


async def _write_batch(store: ChunkStore, batch: Sequence[PreparedDocument], tally: _Tally) -> None:
    """Together if it goes; else one by one, so that only what is at fault is left out."""
    try:
        await _write(store, batch)
    except Exception as error:
        if len(batch) == 1:
            tally.fail(batch[0].path, error)
            return
        for prepared in batch:
            await _write_batch(store, [prepared], tally)
    else:
        for prepared in batch:
            tally.write(prepared)


async def _write(store: ChunkStore, batch: Sequence[PreparedDocument]) -> None:
    chunks = [chunk for prepared in batch for chunk in prepared.chunks]
    records = await asyncio.to_thread(_records, chunks)
    old = [set(await store.chunk_ids(prepared.document.id)) for prepared in batch]
    for prepared in batch:
        await store.remove_document(prepared.document.id)
    await store.flush()
    await store.write_chunks(records)
    await store.flush()
    for prepared, stored in zip(batch, old, strict=True):
        await store.remove_chunks(sorted(stored.difference(chunk.id for chunk in prepared.chunks)))
        await store.write_document(prepared.document)
    await store.flush()


def _records(chunks: Sequence[Chunk]) -> list[ChunkRecord]:
    return [ChunkRecord(chunk, count_terms(chunk.index_text), None) for chunk in chunks]
