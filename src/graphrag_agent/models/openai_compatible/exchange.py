"""A reply as it arrives: bytes in batches, the body of a whole one, and what can go wrong on the way."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from graphrag_agent.models.openai_compatible.event_stream import BrokenReplyError
from graphrag_agent.models.openai_compatible.reply import Delta, Reply

DRAIN_SECONDS = 0.1
"""How long the end of the body may keep us after `[DONE]`; once it is read the connection can be used again."""


@contextmanager
def sdk_errors(response: Any) -> Iterator[None]:
    """What goes wrong while a reply is read, as the SDK would raise it."""
    import anyio
    import openai

    http = sys.modules[type(response).__module__.partition(".")[0]]  # httpx, or httpx2 for openai>=3
    request = response.request
    try:
        yield
    except http.TimeoutException as error:
        raise openai.APITimeoutError(request=request) from error
    except (http.RequestError, OSError, anyio.EndOfStream) as error:
        if isinstance(error, TimeoutError):  # nobody's fault but the caller's clock
            raise
        raise openai.APIConnectionError(request=request) from error
    except BrokenReplyError as error:
        if error.body is None:
            raise openai.APIConnectionError(message=str(error), request=request) from error
        raise openai.APIError(str(error), request, body=error.body) from error


def is_event_stream(response: Any) -> bool:
    """Whether a reply is a stream: some servers answer with a whole message though they were asked for one."""
    return "json" not in response.headers.get("content-type", "")


def json_body(response: Any) -> dict[str, Any]:
    """The body of a whole reply. Raises BrokenReplyError where it is no JSON object."""
    try:
        body = response.json()
    except ValueError:
        body = None
    if isinstance(body, dict):
        return body
    raise BrokenReplyError(f"the server answered with something that is no JSON object: {response.text[:200]!r}")


def feed_body(reply: Reply, response: Any) -> Delta | None:
    """What the body of a reply adds that is labelled as JSON; some servers label their event streams so too."""
    if response.content.lstrip().startswith((b"data:", b"event:", b"id:", b":")):
        return reply.feed(response.content)
    return reply.feed_whole(json_body(response))


class Arrivals:
    """The bytes of a streamed response in batches: all that has come, without waiting for more.

    A task reads the network, so that what one read brings (often many chunks) is taken in one step.
    """

    def __init__(self, response: Any) -> None:
        self._response = response
        self._pieces: list[bytes] = []
        self._waiter: asyncio.Future[None] | None = None
        self._loop = asyncio.get_running_loop()
        self._task = self._loop.create_task(self._read())

    async def take(self, until: float | None) -> bytes:
        """The bytes since the last call; none at the end. Raises TimeoutError when the loop's clock reads `until`."""
        if not self._pieces and not self._task.done():
            await self._news(until)
        if not self._pieces:
            await self._task  # ended, or about to: raises what ended it
        data = b"".join(self._pieces)
        self._pieces.clear()
        return data

    async def linger(self, seconds: float) -> None:
        """Let so much time pass, or less where the body ends before."""
        await asyncio.wait([self._task], timeout=seconds)

    async def _news(self, until: float | None) -> None:
        # no asyncio.timeout: this runs once a token
        self._waiter = waiter = self._loop.create_future()
        alarm = self._loop.call_at(until, _give_up, waiter) if until else None
        try:
            await waiter
        finally:
            self._waiter = None
            if alarm:
                alarm.cancel()

    async def _read(self) -> None:
        try:
            async for piece in self._response.aiter_bytes():
                if piece:
                    self._pieces.append(piece)
                    self._wake()
        finally:
            self._wake()

    def _wake(self) -> None:
        if self._waiter and not self._waiter.done():
            self._waiter.set_result(None)

    async def __aenter__(self) -> Arrivals:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._task.cancel()
        try:
            await asyncio.wait([self._task])
            if not self._task.cancelled():
                self._task.exception()  # seen: whoever left early doesn't want to know
        finally:
            await self._response.aclose()


def _give_up(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_exception(TimeoutError())
