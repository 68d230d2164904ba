"""Whoever writes or removes documents of a store in this process, one after the other."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Hashable
from typing import Any
from weakref import WeakValueDictionary

from graphrag_agent.finishing import finish
from graphrag_agent.sync_edge import finish_on_background_loop


class WriterTurns:
    """The turns of one store: several writes that belong together are one to all who take turns.

    They run on the background loop, whatever loop or thread asks for them: on a loop that a sync call blocks, as one
    in a notebook does, they would hold up that very call.
    """

    def __init__(self) -> None:
        self._turn = asyncio.Lock()

    async def take(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Do the work when those before are done. A cancel ends the wait for the turn, but not the work in it."""
        await finish_on_background_loop(self._take(work))

    async def _take(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        async with self._turn:
            await finish(work())  # a cancelled write goes on in its thread: the turn lasts until it is done


_lock = threading.Lock()
_of_place: WeakValueDictionary[Hashable, WriterTurns] = WeakValueDictionary()


def shared_turns(place: Hashable) -> WriterTurns:
    """The same for all stores of this process that write to the place."""
    with _lock:
        return _of_place.setdefault(place, WriterTurns())
