"""Threads of their own for work on databases, so that slow ones hold up nothing else of the process."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

from graphrag_agent.tools._database_reading import Stop

MOST_THREADS = 8
"""So many queries run at once, each on a connection or process of its own; the others wait."""

Result = TypeVar("Result")


class _Threads:
    def __init__(self) -> None:
        self.executor = ThreadPoolExecutor(MOST_THREADS, thread_name_prefix="database")


_threads = _Threads()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_threads.__init__)  # type: ignore[misc]  # the threads are its parent's


async def run_stoppable(work: Callable[[Stop], Result]) -> Result:
    """The result of blocking work in a thread; when nobody waits any longer, what it runs is stopped too."""
    stop = Stop()
    try:
        return await asyncio.get_running_loop().run_in_executor(_threads.executor, copy_context().run, work, stop)
    except asyncio.CancelledError:
        threading.Thread(target=stop.now, daemon=True).start()  # waits for the work, which may hold all our threads
        raise
