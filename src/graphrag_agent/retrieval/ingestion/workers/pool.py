"""The workers of this process: at most as many as there are cores, used again, and never for two tenants.

A file that took its worker over could spoil what that worker reads next, so a worker reads one tenant's files only.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from graphrag_agent.retrieval.ingestion.workers.process import WorkerProcess

MOST_WORKERS = 4
"""More would wait for the one that writes."""


class WorkerPool:
    """Lends a worker for one file at a time, from any thread, and starts one where none is free."""

    def __init__(self, size: int, start: Callable[[], WorkerProcess] = WorkerProcess) -> None:
        self.size = size
        self._start = start
        self._slots = threading.BoundedSemaphore(size)
        self._lock = threading.Lock()
        self._idle: list[tuple[str, WorkerProcess]] = []
        self._lent: set[WorkerProcess] = set()

    @contextmanager
    def lend(self, tenant: str, *, fresh: bool = False) -> Iterator[WorkerProcess]:
        """A worker that has read nobody else's files; with `fresh`, no files at all. Waits while all are lent."""
        with self._slots:
            worker = self._take(tenant, fresh=fresh)
            try:
                yield worker
            finally:
                self._put_back(worker, tenant)

    def rest(self) -> None:
        """Nothing is to be read soon: one idle worker stays for the next small file, the others end."""
        with self._lock:
            ended, self._idle = self._idle[1:], self._idle[:1]
        for _, worker in ended:
            worker.close()

    def close(self) -> None:
        """End all workers, those that are lent too."""
        with self._lock:
            idle, self._idle = self._idle, []
            for worker in self._lent:
                worker.kill()  # its borrower, who holds its pipes, is told so
        for _, worker in idle:
            worker.close()

    def forget(self) -> None:
        """In a forked child: the workers are its parent's."""
        for worker in [*self._lent, *(worker for _, worker in self._idle)]:
            worker.let_go()
        WorkerPool.__init__(self, self.size, self._start)  # its locks may be held by threads that are not here

    def _take(self, tenant: str, *, fresh: bool) -> WorkerProcess:
        with self._lock:
            ended = [item for item in self._idle if not item[1].is_alive]
            own = [item for item in self._idle if item[0] == tenant and item not in ended]
            found = own[-1] if own and not fresh else None
            # one of somebody else's makes room for the one that is started
            ended += [] if found else [item for item in self._idle if item not in ended][:1]
            self._idle = [item for item in self._idle if item not in ended and item is not found]
            if found:
                self._lent.add(found[1])
        for _, worker in ended:
            worker.close()
        if found:
            return found[1]
        started = self._start()
        with self._lock:
            self._lent.add(started)
        return started

    def _put_back(self, worker: WorkerProcess, tenant: str) -> None:
        with self._lock:
            self._lent.discard(worker)
            if is_alive := worker.is_alive:
                self._idle.append((tenant, worker))
        if not is_alive:
            worker.close()


shared_pool = WorkerPool(min(MOST_WORKERS, os.cpu_count() or 1))
"""Of all ingests of this process."""
atexit.register(shared_pool.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=shared_pool.forget)
