"""The workers that one ingest asks."""

from __future__ import annotations

import asyncio
import hashlib
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from graphrag_agent.errors import ParseError
from graphrag_agent.retrieval.ingestion.parsing.registry import check_readable
from graphrag_agent.retrieval.ingestion.workers.answer import Answer, read_answer
from graphrag_agent.retrieval.ingestion.workers.limits import PARSE_SECONDS
from graphrag_agent.retrieval.ingestion.workers.pool import WorkerPool, shared_pool
from graphrag_agent.retrieval.ingestion.workers.process import WorkerProcess, WornWorkerError


class ReadFile(NamedTuple):
    """A file as a worker read it."""

    answer: Answer
    file_hash: str
    """SHA-256 of the bytes that the answer is about."""


class Team:
    """Reads files of one tenant side by side; in an `async with` block, whose end kills those still at work."""

    def __init__(self, tenant: str, *, pool: WorkerPool = shared_pool, seconds: float = PARSE_SECONDS) -> None:
        self.size = pool.size
        self._tenant = tenant
        self._pool = pool
        self._seconds = seconds
        self._threads = ThreadPoolExecutor(pool.size, thread_name_prefix="graphrag-agent-parsing")
        self._lock = threading.Lock()
        self._working: set[WorkerProcess] = set()
        self._is_closed = False

    async def read(self, path: Path) -> ReadFile:
        """The file, parsed and cut. Raises ParseError that names it and says what to do about it."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._read, path)

    async def __aenter__(self) -> Team:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._is_closed = True
            for worker in self._working:
                worker.kill()
        self._threads.shutdown(wait=False, cancel_futures=True)
        await asyncio.to_thread(self._pool.rest)

    def _read(self, path: Path) -> ReadFile:
        check_readable(path)
        try:
            try:
                return self._ask(path, self._seconds)
            except WornWorkerError as error:
                return self._ask(path, error.seconds_left, fresh=True)
        except ParseError as error:
            raise ParseError(f"{path}: {error}") from error
        except OSError as error:
            raise ParseError(f"{path}: can't be read ({error.strerror}); check the path and its permissions") from error

    def _ask(self, path: Path, seconds: float, *, fresh: bool = False) -> ReadFile:
        with self._pool.lend(self._tenant, fresh=fresh) as worker, path.open("rb") as file:
            self._begin(worker)
            try:
                digest = hashlib.sha256()
                size = os.fstat(file.fileno()).st_size
                line = worker.ask(path.name, file, size, seconds=seconds, seen=digest.update)
            finally:
                self._end(worker)
        return ReadFile(read_answer(line), digest.hexdigest())

    def _begin(self, worker: WorkerProcess) -> None:
        with self._lock:
            if not self._is_closed:
                self._working.add(worker)
                return
        worker.close()  # nobody would end it: the pool has been told already that nothing is to be read soon
        raise ParseError("not read: the ingest has ended")

    def _end(self, worker: WorkerProcess) -> None:
        with self._lock:
            self._working.discard(worker)
