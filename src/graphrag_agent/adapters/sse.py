"""A turn's events as Server-Sent Events, in their order, with heartbeats."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

from graphrag_agent.events import ErrorRaised, Event

HEARTBEAT_SECONDS = 15.0
RETRY_MILLISECONDS = 2_000
CONTENT_TYPE = "text/event-stream"
HEARTBEAT = b": heartbeat\n\n"

_BREAK = re.compile("\r\n|\r|\n")


def sse_message(data: str, *, event: str = "", id_: str = "", retry: int | None = None) -> bytes:
    """One message. A line break in `data` begins another line of it; elsewhere it becomes a blank."""
    lines = [f"retry: {retry}"] if retry is not None else []
    lines += [f"{name}: {_one_line(value)}" for name, value in (("event", event), ("id", id_)) if value]
    lines += [f"data: {line}" for line in _BREAK.split(data)]
    return ("\n".join(lines) + "\n\n").encode("utf-8", "replace")  # half a surrogate pair must not end the stream


def sse_of(event: Event, *, retry: int | None = None) -> bytes:
    """The event as a message: its type, its id, and its JSON form in one line."""
    data = json.dumps(event.as_dict(), ensure_ascii=False, default=str)
    return sse_message(data, event=event.type, id_=event.event_id, retry=retry)


async def stream_sse(
    events: AsyncIterator[Event], *, heartbeat: float = HEARTBEAT_SECONDS, retry: int = RETRY_MILLISECONDS
) -> AsyncGenerator[bytes, None]:
    """The events as bytes of an event stream; a comment after each `heartbeat` seconds of silence.

    An error that came as the event `error` ends the stream; one that came before any event is raised, so that the app
    can answer with a status. Closing this closes `events`.
    """
    first: int | None = retry
    last: Event | None = None
    try:
        async with aclosing(with_pauses(events, heartbeat)) as paced:
            async for event in paced:
                if event is None:
                    yield HEARTBEAT
                    continue
                last = event
                yield sse_of(event, retry=first)
                first = None
    except Exception:
        if not isinstance(last, ErrorRaised):
            raise


async def with_pauses(events: AsyncIterator[Event], seconds: float) -> AsyncGenerator[Event | None, None]:
    """The events, and None after each so many seconds without one."""
    waiting: asyncio.Future[Event] | None = None
    try:
        while True:
            waiting = waiting or asyncio.ensure_future(anext(events))
            await asyncio.wait([waiting], timeout=seconds)
            if not waiting.done():
                yield None
                continue
            done, waiting = waiting, None
            try:
                event = done.result()
            except StopAsyncIteration:
                return
            yield event
    finally:
        if waiting is not None:
            waiting.cancel()
            await asyncio.wait([waiting])
        if isinstance(events, AsyncGenerator):
            await events.aclose()


def _one_line(value: str) -> str:
    return re.sub("[\r\n\0]", " ", value)
