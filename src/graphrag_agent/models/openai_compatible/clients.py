"""HTTP clients for the OpenAI SDK: one connection pool for each event loop."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import WeakKeyDictionary, finalize

if TYPE_CHECKING:
    import openai

    _Pools: TypeAlias = WeakKeyDictionary[
        asyncio.AbstractEventLoop, tuple[openai.DefaultAsyncHttpxClient, AsyncIterator[None]]
    ]


def build_sync_client(**settings: Any) -> openai.DefaultHttpxClient:
    """An HTTP client for calls from sync code."""
    import openai

    return openai.DefaultHttpxClient(**settings)


def build_async_client(**settings: Any) -> openai.DefaultAsyncHttpxClient:
    """An HTTP client with one pool for each event loop, closed with the loop or with the client.

    ChatOpenAI shares a pool among all loops. Its idle connections belong to the loop that opened them, so that a
    second `asyncio.run` fails with "Event loop is closed". The connections are aiohttp's, as the SDK offers it: a
    request takes a quarter of the CPU that the SDK's own transport takes (docs/decisions.md).
    """
    import openai

    class LoopLocalClient(openai.DefaultAsyncHttpxClient):
        def __init__(self) -> None:
            # this client itself sends nothing: loading certificates for it would take 50 ms
            super().__init__(**{**settings, "verify": False})
            self._pools: _Pools = WeakKeyDictionary()
            self._lock = threading.Lock()
            finalize(self, _close_pools, self._pools).atexit = False

        async def send(self, request: Any, **kwargs: Any) -> Any:
            loop = asyncio.get_running_loop()
            with self._lock:
                pool = self._pools.get(loop)
                if is_new := pool is None:
                    client = _connections(**settings)
                    pool = self._pools[loop] = (client, _close_with_loop(client))
            if is_new:
                await anext(pool[1])
            try:
                return await pool[0].send(request, **kwargs)
            except Exception as error:
                if type(error).__name__ != "ConnectTimeout" or isinstance(error.__cause__, TimeoutError):
                    raise
                # the transport calls every failed connection a timeout, a refused one too
                library = sys.modules[type(error).__module__.partition(".")[0]]  # the SDK's choice: httpx or httpx2
                raise library.ConnectError(str(error), request=request) from error.__cause__

    return LoopLocalClient()


def _connections(**settings: Any) -> openai.DefaultAsyncHttpxClient:
    import openai

    try:
        return openai.DefaultAioHttpClient(**settings)
    except RuntimeError:  # an SDK that doesn't bring the transport itself
        return openai.DefaultAsyncHttpxClient(**settings)


async def _close_with_loop(client: openai.DefaultAsyncHttpxClient) -> AsyncIterator[None]:
    """Suspended after its first step; a loop that shuts down ends its suspended generators."""
    try:
        yield
    finally:
        await client.aclose()


def _close_pools(pools: _Pools) -> None:
    for loop, (client, _) in list(pools.items()):
        with suppress(RuntimeError):  # the loop is closed, and its pool with it
            loop.call_soon_threadsafe(_start_closing, loop, client)


def _start_closing(loop: asyncio.AbstractEventLoop, client: openai.DefaultAsyncHttpxClient) -> None:
    loop.create_task(client.aclose())  # nothing waits for it, and the loop may end first
