"""Keeps a running turn's events, so that a client that lost its connection goes on where it was."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator

from graphrag_agent.errors import ThreadError
from graphrag_agent.events import ErrorRaised, Event, TextDelta, ThinkingDelta
from graphrag_agent.finishing import wait_out

GRACE_SECONDS = 30.0
MAX_EVENTS = 20_000
MAX_CHARACTERS = 4_000_000


class TurnLog:
    """Reads one turn in a task of its own and serves it to any number of readers, from the start or from an event on.

    The turn goes on for `grace` seconds after its last reader has left, then it is stopped. Of more events than
    `max_events`, or text deltas of more than `max_characters`, the oldest are dropped. Belongs to one event loop.
    """

    def __init__(
        self,
        events: AsyncIterator[Event],
        *,
        grace: float = GRACE_SECONDS,
        max_events: int = MAX_EVENTS,
        max_characters: int = MAX_CHARACTERS,
    ) -> None:
        self._events = events
        self._grace = grace
        self._most = (max_events, max_characters)
        self._kept: deque[Event] = deque()
        self._characters = 0
        self._dropped = 0
        self._error: Exception | None = None
        self._readers = 0
        self._news = asyncio.Event()
        self._leaving: asyncio.TimerHandle | None = None
        self._task = asyncio.get_running_loop().create_task(self._read())
        self._wait_for_readers()

    @property
    def turn(self) -> str:
        """The turn's id; empty before its first event."""
        return self._kept[0].event_id.partition(":")[0] if self._kept else ""

    @property
    def is_ended(self) -> bool:
        """Whether no further event will come."""
        return self._task.done()

    def read(self, after: str = "") -> AsyncGenerator[Event, None]:
        """The events, those after the event of that id; from the start without one.

        Raises ThreadError for an id that isn't this turn's, and where what follows it was dropped. What ended the turn
        is raised after its last event. Closing this lets the turn go on for the grace period.
        """
        return self._serve(0 if not after else self._place_of(after))

    async def stop(self) -> None:
        """Stop the turn now."""
        self._task.cancel()
        await wait_out(self._task)

    def _place_of(self, after: str) -> int:
        turn, _, number = after.rpartition(":")
        last = self._dropped + len(self._kept)
        if turn != self.turn or not number.isascii() or not number.isdigit() or not 0 < int(number[:9]) <= last:
            raise ThreadError(f"event id {after[:80]!r} is none of this turn; read it from the start")
        return int(number)

    async def _serve(self, place: int) -> AsyncGenerator[Event, None]:
        self._readers += 1
        if self._leaving is not None:
            self._leaving.cancel()
        try:
            while True:
                if place < self._dropped:
                    raise ThreadError("the events that follow were dropped; read the thread's history instead")
                while place < self._dropped + len(self._kept) and place >= self._dropped:
                    event = self._kept[place - self._dropped]
                    place += 1
                    yield event
                if place < self._dropped:
                    continue
                if self.is_ended:
                    break
                await self._news.wait()
            if self._error is not None:
                raise self._error
        finally:
            self._readers -= 1
            if not self._readers:
                self._wait_for_readers()

    def _wait_for_readers(self) -> None:
        if not self.is_ended:
            self._leaving = asyncio.get_running_loop().call_later(self._grace, self._task.cancel)

    async def _read(self) -> None:
        try:
            async for event in self._events:
                self._keep(event)
        except Exception as error:
            self._error = error
        finally:
            if isinstance(self._events, AsyncGenerator):
                await self._events.aclose()
            if self._leaving is not None:
                self._leaving.cancel()
            # the readers look again once this task is done
            asyncio.get_running_loop().call_soon(self._tell)

    def _keep(self, event: Event) -> None:
        self._kept.append(event)
        self._characters += _size(event)
        while len(self._kept) > 1 and (len(self._kept) > self._most[0] or self._characters > self._most[1]):
            self._characters -= _size(self._kept.popleft())
            self._dropped += 1
        self._tell()

    def _tell(self) -> None:
        self._news.set()
        self._news = asyncio.Event()


def _size(event: Event) -> int:
    if isinstance(event, TextDelta | ThinkingDelta):
        return len(event.text)
    return len(event.message) if isinstance(event, ErrorRaised) else 0
