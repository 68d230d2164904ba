"""Items from work that runs apart from their reader."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, TypeVar

from graphrag_agent.finishing import wait_out

T = TypeVar("T")
Work = Callable[[Callable[[T], None]], Awaitable[None]]
"""Calls what it is given with each item."""


def in_own_task(work: Work[T]) -> AsyncGenerator[T, None]:
    """What the work emits, made in a task with the context variables of this moment.

    A generator runs in whatever context its reader has at each step, so a principal set inside would leak out, or be
    lost. Closing the result cancels the task and waits for its end.
    """
    return _read(work, contextvars.copy_context())


async def _read(work: Work[T], context: contextvars.Context) -> AsyncGenerator[T, None]:
    pending: asyncio.Queue[tuple[bool, Any]] = asyncio.Queue()

    async def run() -> None:
        try:
            await work(lambda item: pending.put_nowait((True, item)))
        except Exception as error:
            pending.put_nowait((False, error))
        else:
            pending.put_nowait((False, None))

    task = asyncio.get_running_loop().create_task(run(), context=context)
    try:
        while True:
            is_item, value = await pending.get()
            if is_item:
                yield value
            elif value is None:
                return
            else:
                raise value
    finally:
        task.cancel()
        await wait_out(task)
