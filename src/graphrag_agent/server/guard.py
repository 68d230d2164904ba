"""What every request passes: who asks and from where, how much it sends; and how every answer looks."""

from __future__ import annotations

import asyncio
import inspect
import ipaddress
from collections.abc import Awaitable, Callable, Collection, Coroutine, MutableMapping
from typing import Any
from urllib.parse import unquote, urlsplit

from fastapi.routing import APIRoute
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from graphrag_agent.identity import PUBLIC, Principal
from graphrag_agent.server.json_response import WholeJSONResponse
from graphrag_agent.server.limits import Limits
from graphrag_agent.server.problems import Problem, problem_of
from graphrag_agent.server.tokens import Authenticate, bearer_of

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
Handler = Callable[[Request], Coroutine[Any, Any, Response]]
Render = Callable[[Problem], dict[str, Any]]

_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")


class Guard:
    """Checks requests by its routes' class rather than as middleware, which a host app would put before its own routes.

    Without `authenticate` only this machine is answered, as the public principal.
    """

    def __init__(self, authenticate: Authenticate | None, limits: Limits, origins: Collection[str]) -> None:
        self._authenticate = authenticate
        self._limits = limits
        self._origins = frozenset(origin.rstrip("/") for origin in origins)

    def route(self, *, is_open: bool = False, render: Render = Problem.body) -> type[APIRoute]:
        """A class of routes that are guarded; `is_open`: nobody needs to say who they are."""
        guard = self

        class GuardedRoute(APIRoute):
            def get_route_handler(self) -> Handler:
                inner = super().get_route_handler()

                async def handle(request: Request) -> Response:
                    return await guard.answer(request, inner, is_open=is_open, render=render)

                return handle

        return GuardedRoute

    async def answer(self, request: Request, inner: Handler, *, is_open: bool, render: Render) -> Response:
        """The handler's answer, or what says why there is none."""
        try:
            self._check_place(request)
            if "\0" in unquote(request.url.query):
                raise Problem(400, "bad_request", "a parameter has a NUL, which no database takes")
            if not is_open:
                request.state.principal = await self._principal(request)
            if request.method not in _SAFE_METHODS:
                self._check_origin(request)
                request = await self._with_body(request)
            response = await inner(request)
        except Exception as error:
            problem = problem_of(error)
            response = WholeJSONResponse(render(problem), problem.status, problem.headers)
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        return response

    def _check_place(self, request: Request) -> None:
        """Names of other machines in `Host` mean that a page made the browser believe this server is its own."""
        if self._authenticate is not None:
            return
        client = request.client.host if request.client else ""
        if not (is_loopback(client) and is_loopback(_host_of(f"//{request.headers.get('host', '')}"))):
            remedy = "give it bearer tokens (docs/http.md)"
            raise Problem(403, "loopback_only", "without tokens this server only answers its own machine", remedy)

    def _check_origin(self, request: Request) -> None:
        """What a foreign page may send without asking first is refused: CORS stays off unless it was allowed."""
        origin = request.headers.get("origin")
        if origin is not None and origin not in self._origins:
            asked = _netloc_of(origin)
            if not asked or asked.lower() != request.headers.get("host", "").lower():
                raise Problem(403, "foreign_origin", "pages of other sites may not use this server")
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if request.method != "DELETE" and kind != "application/json":
            raise Problem(415, "json_only", "the body must be JSON", "send Content-Type: application/json")

    async def _principal(self, request: Request) -> Principal:
        if self._authenticate is None:
            return PUBLIC
        token = bearer_of(request.headers.get("authorization"))
        found = self._authenticate(token) if token else None
        principal = await found if inspect.isawaitable(found) else found
        if principal is None:
            remedy = "send Authorization: Bearer TOKEN with a token of this server"
            raise Problem(
                401, "unauthorized", "the token is missing or unknown", remedy, headers={"WWW-Authenticate": "Bearer"}
            )
        return principal

    async def _with_body(self, request: Request) -> Request:
        """The request with its body read, within the limits."""
        body = bytearray()
        limit = self._limits.max_body_bytes
        too_large = Problem(413, "body_too_large", f"the body is larger than {limit} bytes", "send less")
        length = request.headers.get("content-length", "0")
        if not length.isdigit() or len(length) > 18 or int(length) > limit:
            raise too_large
        try:
            async with asyncio.timeout(self._limits.max_body_seconds):
                async for piece in request.stream():
                    body += piece
                    if len(body) > limit:
                        raise too_large
        except TimeoutError:
            raise Problem(408, "body_too_slow", "the body did not arrive in time", "send it again") from None
        except ClientDisconnect:
            raise Problem(400, "bad_request", "the client left before its request was complete") from None
        return Request(request.scope, _replayed(bytes(body), request.receive))


def principal_of(request: Request) -> Principal:
    """Who asks, as the guard found."""
    principal: Principal = request.state.principal
    return principal


def is_loopback(host: str) -> bool:
    """Whether the name or address is this machine's own."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _host_of(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _netloc_of(url: str) -> str:
    try:
        return urlsplit(url).netloc
    except ValueError:
        return ""


def _replayed(
    body: bytes, receive: Callable[[], Awaitable[MutableMapping[str, Any]]]
) -> Callable[[], Awaitable[MutableMapping[str, Any]]]:
    """Gives the body, then whatever comes: that the client has left."""
    is_read = False

    async def replay() -> MutableMapping[str, Any]:
        nonlocal is_read
        if is_read:
            return await receive()
        is_read = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay
