"""Threads for one kind of blocking work, so that slow work holds up nothing else of the process."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar
from weakref import WeakSet

Result = TypeVar("Result")


class OwnThreads:
    """So many threads, for as long as the process lives; a forked child, which has none of them, gets new ones."""

    def __init__(self, most: int, name: str) -> None:
        self._make = partial(ThreadPoolExecutor, most, thread_name_prefix=name)
        self.renew()
        _all.add(self)

    async def run(self, work: Callable[..., Result], *arguments: Any) -> Result:
        """The work's result; it waits where all threads are busy."""
        return await self.begin(work, *arguments)

    def begin(self, work: Callable[..., Result], *arguments: Any) -> asyncio.Future[Result]:
        """The same for who doesn't wait for the result, or not to its end."""
        return asyncio.get_running_loop().run_in_executor(self._threads, partial(work, *arguments))

    def renew(self) -> None:
        """Let go of threads that this process hasn't."""
        self._threads = self._make()


_all = WeakSet[OwnThreads]()


def _renew_all() -> None:
    for own in list(_all):
        own.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)
