"""One turn at a time on a thread, whatever event loop or thread of this process it runs on."""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections import deque
from collections.abc import AsyncIterator
from concurrent.futures import Future
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from graphrag_agent.errors import ThreadBusyError, ThreadError

WhenBusy = Literal["refuse", "wait"]


@dataclass(eq=False, slots=True)
class RunningTurn:
    """A turn that holds its thread, or waits for it. It belongs to the event loop that it is made on."""

    id: str
    thread: str
    owner: str
    is_answered: bool = False
    """Once the answer is out it is being written down; that is no longer broken off."""
    is_stopped: bool = False
    ended: Future[None] = field(default_factory=Future)
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    _work: asyncio.Task[Any] | None = None

    def watch(self, work: asyncio.Task[Any]) -> None:
        """What `stop` cancels; at once where that was asked for before."""
        self._work = work
        self._cancel()

    def stop(self) -> None:
        """Break the turn off, from any thread."""
        if not self.is_lost:
            self._loop.call_soon_threadsafe(self._stop)

    @property
    def is_lost(self) -> bool:
        """Whether its loop was closed over it, so that it can't end by itself."""
        return self._loop.is_closed()

    def _stop(self) -> None:
        if not self.is_answered:
            self.is_stopped = True
            self._cancel()

    def _cancel(self) -> None:
        if self.is_stopped and self._work is not None:
            self._work.cancel()


class RunningTurns:
    """The turns that run on one checkpointer. What has ended leaves nothing behind."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._turns: dict[str, RunningTurn] = {}
        self._waiting: dict[str, deque[tuple[RunningTurn, Future[None]]]] = {}

    def __len__(self) -> int:
        return len(self._turns) + len(self._waiting)

    @asynccontextmanager
    async def hold(self, turn: RunningTurn, when_busy: WhenBusy) -> AsyncIterator[None]:
        """The thread is the turn's inside the block.

        Raises ThreadBusyError where another turn has it and `when_busy` is "refuse", ThreadError where that is
        another owner's.
        """
        waiting = self._take(turn, when_busy)
        try:
            if waiting is not None:
                await asyncio.wrap_future(waiting)
            yield
        finally:
            self._leave(turn, waiting)

    def find(self, thread_or_turn: str, owner: str) -> RunningTurn | None:
        """The owner's turn of that id, or on that thread; none whose loop was closed, for which nobody can wait."""
        with self._lock:
            turn = self._turns.get(thread_or_turn)
            turns = [turn] if turn else [turn for turn in self._turns.values() if turn.id == thread_or_turn]
        return next((turn for turn in turns if turn.owner == owner and not turn.is_lost), None)

    def on(self, thread: str) -> list[RunningTurn]:
        """The turn that holds the thread, then those that wait for it; none whose loop was closed."""
        with self._lock:
            holder = self._turns.get(thread)
            turns = [*([holder] if holder else []), *(turn for turn, _ in self._waiting.get(thread, ()))]
        return [turn for turn in turns if not turn.is_lost]

    def _take(self, turn: RunningTurn, when_busy: WhenBusy) -> Future[None] | None:
        """None where the thread was free, else what is done when it is the turn's."""
        with self._lock:
            holder = self._turns.get(turn.thread)
            if holder is None or holder.is_lost:
                self._turns[turn.thread] = turn
                return None
            if holder.owner != turn.owner:
                raise unknown_thread(turn.thread)
            if when_busy == "refuse":
                raise ThreadBusyError(
                    f"thread {turn.thread!r} has a running turn; wait for its end or stop it, "
                    "or set GRAPHRAG_WHEN_BUSY=wait"
                )
            waiting: Future[None] = Future()
            self._waiting.setdefault(turn.thread, deque()).append((turn, waiting))
            return waiting

    def _leave(self, turn: RunningTurn, waiting: Future[None] | None) -> None:
        with self._lock:
            if self._turns.get(turn.thread) is turn:
                self._hand_over(turn.thread)
            elif waiting is not None and (queue := self._waiting.get(turn.thread)):
                left = deque(item for item in queue if item[0] is not turn)
                if left:
                    self._waiting[turn.thread] = left
                else:
                    del self._waiting[turn.thread]
        if not turn.ended.done():
            turn.ended.set_result(None)

    def _hand_over(self, thread: str) -> None:
        queue = self._waiting.get(thread, deque())
        while queue:
            turn, waiting = queue.popleft()
            if not turn.is_lost and waiting.set_running_or_notify_cancel():
                self._turns[thread] = turn
                waiting.set_result(None)
                break
        else:
            del self._turns[thread]
        if not queue:
            self._waiting.pop(thread, None)


_registries: weakref.WeakKeyDictionary[Any, RunningTurns] = weakref.WeakKeyDictionary()
_registries_of_files: dict[str, RunningTurns] = {}
_registries_lock = threading.Lock()


def running_turns_of(database: object) -> RunningTurns:
    """The turns of every agent of this process that keeps its threads there: in a file, or a checkpointer's memory."""
    with _registries_lock:
        if isinstance(database, str):
            return _registries_of_files.setdefault(database, RunningTurns())
        return _registries.setdefault(database, RunningTurns())


def unknown_thread(thread: str) -> ThreadError:
    """What somebody is told of a thread that isn't there, or isn't theirs."""
    return ThreadError(f"thread {thread!r} is unknown; leave it out to begin one")
