"""`ChatOpenAI` for OpenAI and for every server that speaks its chat-completions protocol."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import WeakKeyDictionary, finalize

from pydantic import SecretStr

from graphrag_agent.errors import ModelUnavailableError

if TYPE_CHECKING:
    import openai
    from langchain_openai import ChatOpenAI

    _Pools: TypeAlias = WeakKeyDictionary[
        asyncio.AbstractEventLoop, tuple[openai.DefaultAsyncHttpxClient, AsyncIterator[None]]
    ]

NO_KEY = "none"
"""Sent where a base URL is set without a key: the client insists on one, local servers ignore it."""


def build_openai_model(name: str, **options: Any) -> ChatOpenAI:
    """A ChatOpenAI of that name that streams, reports usage and stays on chat completions.

    The base URL comes from the options, OPENAI_API_BASE or OPENAI_BASE_URL, the key from the options or
    OPENAI_API_KEY. Raises ModelUnavailableError where neither is given. The model may be called from any event loop.
    """
    from langchain_openai import ChatOpenAI

    base_url = options.pop("base_url", None) or _find_variable("OPENAI_API_BASE", "OPENAI_BASE_URL")
    api_key = options.pop("api_key", None) or _find_variable("OPENAI_API_KEY") or (NO_KEY if base_url else None)
    if not api_key:
        raise ModelUnavailableError(
            f"model 'openai:{name}' needs OPENAI_API_KEY, or OPENAI_BASE_URL for a local server; "
            "model 'offline' needs neither"
        )
    if isinstance(api_key, str):
        api_key = SecretStr(api_key)
    chosen = {"streaming": True, "stream_usage": True, "use_responses_api": False, **_build_clients(options), **options}
    return ChatOpenAI(model=name, base_url=base_url, api_key=api_key, **chosen)


def _find_variable(*names: str) -> str | None:
    return next((os.environ[name] for name in names if os.environ.get(name)), None)


def _build_clients(options: dict[str, Any]) -> dict[str, Any]:
    """The HTTP clients, with the explicit proxy if there is one; proxy variables of the system work by themselves."""
    if "http_client" in options or "http_async_client" in options:
        return {}
    proxy = options.pop("openai_proxy", None) or _find_variable("OPENAI_PROXY")
    if proxy is None:
        return {"http_async_client": _build_async_client()}
    import openai

    return {
        "openai_proxy": None,  # ChatOpenAI refuses it beside clients
        "http_client": openai.DefaultHttpxClient(proxy=proxy),
        "http_async_client": _build_async_client(proxy=proxy),
    }


def _build_async_client(**settings: Any) -> openai.DefaultAsyncHttpxClient:
    """An HTTP client with one pool for each event loop, closed with the loop or with the client.

    ChatOpenAI shares a pool among all loops. Its idle connections belong to the loop that opened them, so that a
    second `asyncio.run` fails with "Event loop is closed".
    """
    import openai

    class LoopLocalClient(openai.DefaultAsyncHttpxClient):
        def __init__(self) -> None:
            super().__init__(**settings)
            self._pools: _Pools = WeakKeyDictionary()
            self._lock = threading.Lock()
            finalize(self, _close_pools, self._pools).atexit = False

        async def send(self, request: Any, **kwargs: Any) -> Any:
            loop = asyncio.get_running_loop()
            with self._lock:
                pool = self._pools.get(loop)
                if is_new := pool is None:
                    client = openai.DefaultAsyncHttpxClient(**settings)
                    pool = self._pools[loop] = (client, _close_with_loop(client))
            if is_new:
                await anext(pool[1])
            return await pool[0].send(request, **kwargs)

    return LoopLocalClient()


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
