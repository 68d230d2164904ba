"""Work on databases, in threads of its own, that stops when nobody waits for it any more."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import TypeVar

from graphrag_agent.own_threads import OwnThreads
from graphrag_agent.tools._database_reading import Stop

MOST_THREADS = 8
"""So many queries run at once, each on a connection or process of its own; the others wait."""

_threads = OwnThreads(MOST_THREADS, "database")
Result = TypeVar("Result")


async def run_stoppable(work: Callable[[Stop], Result]) -> Result:
    """The result of blocking work in a thread; when nobody waits any longer, what it runs is stopped too."""
    stop = Stop()
    try:
        return await _threads.run(copy_context().run, work, stop)
    except asyncio.CancelledError:
        threading.Thread(target=stop.now, daemon=True).start()  # waits for the work, which may hold all our threads
        raise
