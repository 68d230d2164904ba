"""Requests to a Qdrant server: retries, deadlines, a rest for a server that is down, and errors that say what to do."""

from __future__ import annotations

import asyncio
import json
import math
import random
import re
import time
from collections.abc import Awaitable, Callable
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

import httpx
from pydantic import ValidationError
from qdrant_client import AsyncQdrantClient
from qdrant_client.common.client_exceptions import QdrantException, ResourceExhaustedResponse
from qdrant_client.http.exceptions import ApiException, ResponseHandlingException, UnexpectedResponse

from graphrag_agent.errors import KnowledgeBaseError
from graphrag_agent.retrieval.search.circuit_breaker import CircuitBreaker
from graphrag_agent.retrieval.stores.server_address import QdrantServer, parse_address
from graphrag_agent.sync_edge import on_background_loop

T = TypeVar("T")
Request = Callable[[AsyncQdrantClient], Awaitable[T]]

OLDEST_SERVER = (1, 19)
"""The first that counts term rarity within a tenant. An older one ignores the wish, and scores would tell of others."""
_READ_TRIES, _WRITE_TRIES = 4, 8
_WRITE_PATIENCE = 6
"""How many times longer than a read a write may take: it waits out a node's restart."""
_FIRST_WAIT_SECONDS, _LONGEST_WAIT_SECONDS = 0.1, 5.0
_END_SECONDS = 0.001
"""Until a try whose time is over is looked for again."""
_PASSING = {408, 429, 500, 502, 503, 504}
_REMEDY = "start it, or check GRAPHRAG_KB and the network"
_GARBLED = (json.JSONDecodeError, UnicodeDecodeError)
_FAILURES = (ApiException, QdrantException, TimeoutError, *_GARBLED)


class RefusedRequestError(KnowledgeBaseError):
    """The server answers, and says no: another try would get the same."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class ServerDownError(KnowledgeBaseError):
    """The server doesn't answer, or only with passing errors, in spite of all tries."""


class ServerCalls:
    """One client for all threads and loops: every request runs on the background loop.

    Every request must bear repetition, for after a lost reply it is sent again.
    """

    def __init__(self, server: QdrantServer, *, breaker: CircuitBreaker | None = None) -> None:
        self._address = parse_address(server)
        self._read_seconds = server.timeout_seconds
        self._breaker = breaker or CircuitBreaker()
        self._client: AsyncQdrantClient | None = None
        self.writes = 0
        """Grows with each write, when it begins and when it ends."""
        self._is_closed = False
        self._is_checked = False
        self._under_way: dict[asyncio.Timeout, asyncio.Task[Any] | None] = {}
        """The time of each try that is on its way, and its task."""

    @property
    def server_seconds(self) -> int:
        """After how long the server itself should give up a read: nobody waits for it any more."""
        return math.ceil(self._read_seconds / 2)

    async def read(self, request: Request[T]) -> T | None:
        """The reply, or None where there is no such collection. Raises RefusedRequestError or ServerDownError."""
        try:
            return await self._ask(request, self._read_seconds, _READ_TRIES)
        except RefusedRequestError as error:
            if error.status == httpx.codes.NOT_FOUND:
                return None
            raise

    async def write(self, request: Request[T]) -> T:
        """The reply. Raises RefusedRequestError or ServerDownError."""
        self.writes += 1
        try:
            return await self._ask(request, self._read_seconds * _WRITE_PATIENCE, _WRITE_TRIES)
        finally:
            self.writes += 1

    async def aclose(self) -> None:
        """Close the connections, from any loop; a second call does nothing. What is under way fails."""
        await on_background_loop(self._end())

    async def _end(self) -> None:
        """On the background loop, where no try can make a client, or a connection, behind our back."""
        self._is_closed = True
        while self._under_way:  # a connection that is made after its client was closed would stay open
            for clock, task in self._under_way.items():
                if not clock.expired() and not (task and task.cancelling()):
                    clock.reschedule(0.0)
            await asyncio.sleep(_END_SECONDS)
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _ask(self, request: Request[T], seconds: float, tries: int) -> T:
        return await on_background_loop(self._guarded(request, seconds, tries))

    async def _guarded(self, request: Request[T], seconds: float, tries: int) -> T:
        try:
            with self._breaker.watch():
                outcome = await self._try(request, seconds, tries)
        except ServerDownError:
            raise
        except KnowledgeBaseError as resting:
            raise ServerDownError(f"{self._name} is {resting}; {_REMEDY}") from None
        if isinstance(outcome, RefusedRequestError):  # no failure of the server's, so the breaker must not see it
            raise outcome
        return outcome

    async def _try(self, request: Request[T], seconds: float, tries: int) -> T | RefusedRequestError:
        deadline = time.monotonic() + seconds
        for attempt in range(1, tries + 1):
            patience = min(seconds / 2, deadline - time.monotonic())
            try:
                async with asyncio.timeout(patience) as clock:
                    self._under_way[clock] = asyncio.current_task()
                    try:
                        return await self._send(request)
                    finally:
                        del self._under_way[clock]
            except RefusedRequestError as refusal:
                return refusal
            except _FAILURES as error:
                if (refused := self._refusal(error)) is not None:
                    return refused
                if self._is_closed:
                    return _closed()
                wait = _wait_seconds(error, attempt)
                if attempt == tries or time.monotonic() + wait >= deadline:
                    reason = _reason(error, patience)
                    raise ServerDownError(f"{self._name} does not answer ({reason}): {_REMEDY}") from error
            await asyncio.sleep(wait)
        raise AssertionError("the last try returns or raises")

    async def _send(self, request: Request[T]) -> T:
        if self._is_closed:  # perhaps between two tries
            raise _closed()
        if self._client is None:
            self._client = AsyncQdrantClient(
                url=self._address.url,
                headers=dict(self._address.headers),
                timeout=math.ceil(self._read_seconds * _WRITE_PATIENCE),  # ours end sooner
                check_compatibility=False,  # it warns from a thread; `_require_version` raises
                limits=httpx.Limits(max_keepalive_connections=20, keepalive_expiry=5.0),
            )
        if not self._is_checked:
            self._require_version((await self._client.info()).version)
            self._is_checked = True
        return await request(self._client)

    def _require_version(self, version: str) -> None:
        found = re.match(r"v?(\d+)\.(\d+)", version)
        if found is None or (int(found[1]), int(found[2])) < OLDEST_SERVER:
            oldest = ".".join(map(str, OLDEST_SERVER))
            raise RefusedRequestError(f"{self._name} has version {version[:40]}: it must be {oldest} or newer", 0)

    def _refusal(self, error: Exception) -> RefusedRequestError | None:
        """None for what another try may mend."""
        cause = error.source if isinstance(error, ResponseHandlingException) else error
        if isinstance(cause, (*_GARBLED, ValidationError)):
            return RefusedRequestError(f"{self._name} answers, but not as Qdrant does: check GRAPHRAG_KB", 0)
        if not isinstance(error, UnexpectedResponse) or error.status_code in _PASSING:
            return None
        status = error.status_code or 0
        if status in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
            return RefusedRequestError(f"{self._name} refuses the key: set QDRANT_API_KEY to one it knows", status)
        return RefusedRequestError(f"{self._name} refused with status {status}: {_said(error)}", status)

    @property
    def _name(self) -> str:
        return f"the Qdrant server {self._address.url}"


def _closed() -> RefusedRequestError:
    return RefusedRequestError("the knowledge base is closed: open it again", 0)


def _wait_seconds(error: Exception, attempt: int) -> float:
    """What the server asks for, else longer each time, and not the same for all who wait."""
    asked = _retry_after(error)
    if asked is not None:
        return asked
    usual = min(_FIRST_WAIT_SECONDS * 2.0 ** (attempt - 1), _LONGEST_WAIT_SECONDS)
    return usual * random.uniform(0.5, 1.0)  # noqa: S311  # no secret


def _retry_after(error: Exception) -> float | None:
    if isinstance(error, ResourceExhaustedResponse):
        return max(0.0, float(error.retry_after_s))
    if isinstance(error, UnexpectedResponse):
        told = error.headers.get("retry-after", "")
    elif isinstance(error, QdrantException):  # a 429 whose Retry-After is a date, which the client can't read
        told = str(error).partition("integer: ")[2]
    else:
        return None
    if told.isdecimal():
        return float(told)
    try:
        until: datetime = parsedate_to_datetime(told)
    except ValueError:
        return None
    return max(0.0, until.timestamp() - time.time())


def _reason(error: Exception, patience: float) -> str:
    if isinstance(error, UnexpectedResponse):
        return f"status {error.status_code}: {_said(error)}"
    if isinstance(error, QdrantException):
        asked = _retry_after(error)
        return "status 429" if asked is None else f"status 429, to be asked again in {asked:.0f} s"
    if isinstance(error, ResponseHandlingException):
        return f"{type(error.source).__name__}: {error.source}".rstrip(": ")
    return f"no reply within {patience:.1f} s"


def _said(error: UnexpectedResponse) -> str:
    try:
        return str(json.loads(error.content)["status"]["error"])[:200]
    except (ValueError, KeyError, TypeError):
        return error.reason_phrase or "no reason given"
