"""From paths to stored chunks: idempotent, side by side, and a kill at any moment is mended by the next ingest.

`ingest` is the entry. Workers read the files (`workers`), and one writer puts into the store what they have read
(`writing`). Vectors come later (`embedding`); the store keeps those of chunks that are written again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from graphrag_agent.retrieval.ingestion.parsing import find_files
from graphrag_agent.retrieval.ingestion.preparation import (
    IngestTarget,
    PreparedDocument,
    content_hash,
    document_id,
    hash_file,
    make_document,
)
from graphrag_agent.retrieval.ingestion.workers.team import Team
from graphrag_agent.retrieval.ingestion.writing import Inbox, write_all
from graphrag_agent.retrieval.stores.port import ChunkStore

Progress = Callable[[int, int, str], None]
"""Called with files done, files in all, and the file that was just done."""


_HASHED_FILES = 64
"""Files looked at together; each step to another thread costs as much as a small file's hash."""


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
    seconds: float = field(default=0.0, compare=False, repr=False)
    """From the first look at the files to the last chunk's safety; vectors come later."""

    @property
    def chunks_per_second(self) -> float:
        """How fast chunks were written."""
        return self.chunks / self.seconds if self.seconds else 0.0


class _Tally:
    """What has become of the files so far, in whatever order they are done."""

    def __init__(self, files: list[Path], progress: Progress | None) -> None:
        self._files = files
        self._progress = progress
        self._began = time.monotonic()
        self._written: list[int] = []
        self._unchanged = 0
        self._failed: dict[Path, str] = {}

    def keep(self, path: Path) -> None:
        self._unchanged += 1
        self._tell(path)

    def fail(self, path: Path, error: Exception) -> None:
        self._failed[path] = str(error) or type(error).__name__
        self._tell(path)

    def write(self, prepared: PreparedDocument, error: Exception | None) -> None:
        if error:
            self.fail(prepared.path, error)
            return
        self._written.append(len(prepared.records))
        self._tell(prepared.path)

    def report(self) -> IngestReport:
        failed = tuple(FailedFile(str(path), self._failed[path]) for path in self._files if path in self._failed)
        chunks, seconds = sum(self._written), time.monotonic() - self._began
        return IngestReport(len(self._written), chunks, self._unchanged, failed, seconds=seconds)

    def _tell(self, path: Path) -> None:
        if self._progress:
            done = len(self._written) + self._unchanged + len(self._failed)
            self._progress(done, len(self._files), path.name)


async def ingest(
    store: ChunkStore, paths: Iterable[str | Path], target: IngestTarget, progress: Progress | None = None
) -> IngestReport:
    """Bring the store to what the files say, without vectors. A file that fails is reported and the others go on."""
    files = await asyncio.to_thread(find_files, paths)
    tally = _Tally(files, progress)
    inbox = Inbox()
    async with Team(target.tenant) as team:
        # one more than there are workers, so that none waits while we build chunks
        readers = team.size + 1
        changed: asyncio.Queue[Path | None] = asyncio.Queue(readers)

        async def read_all() -> None:
            await _together(*(_read(team, changed, target, inbox, tally) for _ in range(readers)))
            await inbox.close()

        await _together(
            _sift(store, files, target, changed, readers, tally), read_all(), write_all(store, inbox, tally.write)
        )
    return tally.report()


async def _sift(
    store: ChunkStore,
    files: list[Path],
    target: IngestTarget,
    changed: asyncio.Queue[Path | None],
    readers: int,
    tally: _Tally,
) -> None:
    """Hand on the files that are new or changed, and a None to each reader at the end."""
    for start in range(0, len(files), _HASHED_FILES):
        group = files[start : start + _HASHED_FILES]
        for path, name, made_from in await asyncio.to_thread(_fingerprints, group, target):
            if made_from is not None and made_from == await store.content_hash(name):
                tally.keep(path)
            else:
                await changed.put(path)
    for _ in range(readers):
        await changed.put(None)


async def _read(
    team: Team, changed: asyncio.Queue[Path | None], target: IngestTarget, inbox: Inbox, tally: _Tally
) -> None:
    while (path := await changed.get()) is not None:
        try:
            found = await team.read(path)
            prepared = await asyncio.to_thread(make_document, path, target, found)
        except Exception as error:
            tally.fail(path, error)
            continue
        await inbox.put(prepared)


def _fingerprints(files: list[Path], target: IngestTarget) -> list[tuple[Path, str, str | None]]:
    """Each file with its document's id and content hash; None where it can't be read, which its reader will explain."""
    return [(path, document_id(path, target), _content_hash(path, target)) for path in files]


def _content_hash(path: Path, target: IngestTarget) -> str | None:
    try:
        return content_hash(hash_file(path), target)
    except OSError:
        return None


async def _together(*work: Coroutine[Any, Any, None]) -> None:
    """All at once; the first that fails ends the others."""
    tasks = [asyncio.ensure_future(item) for item in work]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
