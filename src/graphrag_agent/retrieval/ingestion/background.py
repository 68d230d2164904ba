"""Vectors filled in the background, for as long as a knowledge base is open."""

from __future__ import annotations

import asyncio
import threading
from weakref import ref

from graphrag_agent.retrieval.embedders import Embedder
from graphrag_agent.retrieval.ingestion.embedding import VectorFill
from graphrag_agent.retrieval.stores.port import ChunkStore
from graphrag_agent.sync_edge import BackgroundTask

_RESUME_SECONDS = 1.0
"""Wait before what is left over is taken up: a command that searches once is gone by then."""
_RETRY_SECONDS = (5.0, 15.0, 60.0, 300.0)
"""Waits while the embedder fails; the last one again and again."""


class BackgroundFill:
    """At most one fill at a time. Its store may be dropped without a word: the fill ends then.

    It runs on the background loop, whatever loop or thread asks for it, and all its methods are thread-safe.
    """

    def __init__(self, store: ChunkStore, embedder: Embedder) -> None:
        self.problem: str | None = None
        """Why chunks are still pending, after the last try."""
        self._store = ref(store)
        self._embedder = embedder
        self._lock = threading.Lock()
        self._task: BackgroundTask | None = None
        self._asked_again = False
        self._is_stopped = False
        self._has_begun = False

    def start_once(self) -> None:
        """`start`, unless it was called before: takes up what an earlier process has left."""
        if not self._has_begun:
            self.start(_RESUME_SECONDS)

    def start(self, delay_seconds: float = 0) -> None:
        """Fill what is pending, now and what is written before this fill ends; nothing after `stop`."""
        with self._lock:
            self._has_begun = self._asked_again = True
            if self._task is None and not self._is_stopped:
                self._task = BackgroundTask(self._run(delay_seconds))

    def start_later(self) -> None:
        """`start` after a failure that somebody has just seen."""
        self.start(_RETRY_SECONDS[0])

    async def stop(self) -> None:
        """For good. Returns when the store is in nobody's hands here any more."""
        with self._lock:
            self._is_stopped = True
            task = self._task
        if task is not None:
            await task.stop()

    async def _run(self, delay_seconds: float) -> None:
        await asyncio.sleep(delay_seconds)
        failures = 0
        while True:
            with self._lock:
                self._asked_again = False
            failed = await self._fill()
            failures = failures + 1 if failed else 0
            with self._lock:
                if not failed and not self._asked_again:
                    self._task = None
                    return
            if failed:
                await asyncio.sleep(_RETRY_SECONDS[min(failures, len(_RETRY_SECONDS)) - 1])

    async def _fill(self) -> bool:
        """Whether it has to be tried again."""
        fill = VectorFill(self._embedder)
        is_going = True
        while is_going:
            store = self._store()
            if store is None:
                return False
            is_going = await fill.advance(store)
            del store  # whoever dropped the knowledge base gets its folder back after this batch
        self.problem = fill.outcome.problem
        return fill.outcome.error is not None
