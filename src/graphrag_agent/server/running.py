"""`serve`: the app in a server of its own."""

from __future__ import annotations

import socket
from collections.abc import Callable

import uvicorn

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
    """Serve until interrupted; `started` is told the URL. Port 0: any free one.

    Raises SettingsError for an address of other machines without tokens, and for one that can't be had.
    """
    authenticate = authenticate_from(settings)
    refuse_open_address(host, authenticate)
    app = create_app(settings, authenticate=authenticate, limits=limits)
    with _listening(host, port) as listening:
        place = f"[{host}]" if ":" in host else host
        started(f"http://{place}:{listening.getsockname()[1]}")
        config = uvicorn.Config(
            app, server_header=False, log_level="warning", timeout_graceful_shutdown=SHUTDOWN_SECONDS
        )
        uvicorn.Server(config).run(sockets=[listening])


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
