"""Work that must have ended before a cancel goes on: it holds a lock, or writes in a thread that nobody can stop.

anyio cancels again at every await, and a gather when it is cancelled twice, so one `asyncio.wait` is not enough.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def wait_out(task: asyncio.Future[Any]) -> None:
    """Wait for the task's end, even where this is cancelled meanwhile; that is raised afterwards."""
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled


async def finish(coroutine: Coroutine[Any, Any, T]) -> T:
    """Its result. It isn't cancelled with this: a cancel is raised after its end."""
    task = asyncio.ensure_future(coroutine)
    await wait_out(task)
    return task.result()
