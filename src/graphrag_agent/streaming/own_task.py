"""An async iterator that runs apart from its reader."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any, TypeVar

T = TypeVar("T")

AHEAD = 100
"""Items that may wait for a slow reader before the source waits too."""


def in_own_task(items: AsyncIterator[T]) -> AsyncGenerator[T, None]:
    """The same items, made in a task with the context variables of this moment.

    A generator runs in whatever context its reader has at each step, so a principal set inside would leak out, or be
    lost. Closing the result cancels the task.
    """
    return _read(items, contextvars.copy_context())


async def _read(items: AsyncIterator[T], context: contextvars.Context) -> AsyncGenerator[T, None]:
    pending: asyncio.Queue[tuple[bool, Any]] = asyncio.Queue(AHEAD)

    async def produce() -> None:
        try:
            async for item in items:
                await pending.put((True, item))
        except Exception as error:
            await pending.put((False, error))
        else:
            await pending.put((False, None))

    task = asyncio.get_running_loop().create_task(produce(), context=context)
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
        await asyncio.wait([task])
