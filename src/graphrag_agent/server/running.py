"""`serve`: the app in a server of its own."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import AsyncExitStack

import uvicorn
from fastapi import FastAPI

from graphrag_agent.errors import SettingsError
from graphrag_agent.server.app import create_app
from graphrag_agent.server.guard import is_loopback
from graphrag_agent.server.limits import Limits
from graphrag_agent.server.tokens import Authenticate, BearerTokens
from graphrag_agent.settings import Settings

SHUTDOWN_SECONDS = 5
BACKLOG = 2048
"""uvicorn's own."""


def serve(
    settings: Settings,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    limits: Limits | None = None,
    started: Callable[[str], None] = lambda url: None,
) -> None:
    """Serve until interrupted; `started` is told the URL when questions are answered. Port 0: any free one.

    Raises SettingsError for an address of other machines without tokens, and for one that can't be had; and what keeps
    the app from starting, such as a missing key or extra.
    """
    authenticate = authenticate_from(settings)
    refuse_open_address(host, authenticate)
    app = create_app(settings, authenticate=authenticate, limits=limits)
    with _listening(host, port) as listening:
        place = f"[{host}]" if ":" in host else host
        url = f"http://{place}:{listening.getsockname()[1]}"
        _Server(app, lambda: started(url)).run(sockets=[listening])


class _Server(uvicorn.Server):
    """Starts and ends the app itself: uvicorn logs what keeps an app from starting with its traceback, and exits."""

    def __init__(self, app: FastAPI, started: Callable[[], None]) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                server_header=False,
                log_level="warning",
                timeout_graceful_shutdown=SHUTDOWN_SECONDS,
                lifespan="off",
            )
        )
        self._app = app
        self._tell_started = started
        self._running = AsyncExitStack()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await self._running.enter_async_context(self._app.router.lifespan_context(self._app))
        await super().startup(sockets)
        self._tell_started()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await super().shutdown(sockets)
        await self._running.aclose()


def authenticate_from(settings: Settings) -> Authenticate | None:
    """The tokens of the file that the settings name; None where they name none."""
    return BearerTokens.load(settings.tokens) if settings.tokens else None


def refuse_open_address(host: str, authenticate: Authenticate | None) -> None:
    """Raises SettingsError where other machines could ask without a token."""
    if authenticate is None and not is_loopback(host):
        raise SettingsError(
            f"host={host!r} can be reached from other machines, so bearer tokens are needed: name their file with "
            "--tokens or GRAPHRAG_TOKENS (docs/http.md), or leave out --host"
        )


def _listening(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(BACKLOG)
    except OSError as error:
        told = error.strerror or type(error).__name__
        raise SettingsError(f"can't listen on host={host!r} port={port}: {told}; give another --port") from None
    return listening
