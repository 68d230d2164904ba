"""The page that shows a chat, and whether the server is up. Neither tells anything about anybody."""

from __future__ import annotations

from importlib.resources import files

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from graphrag_agent.server.guard import Guard
from graphrag_agent.server.json_response import WholeJSONResponse
from graphrag_agent.server.problems import Problem
from graphrag_agent.server.served import Served

_TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class PageRoutes:
    """Handlers of `/`, `/chat`, its files, and `/healthz`."""

    def __init__(self, served: Served) -> None:
        self._served = served
        found = (item for item in files(__package__).joinpath("page").iterdir())
        self._files = {item.name: item.read_bytes() for item in found if _type_of(item.name)}

    def router(self, guard: Guard) -> APIRouter:
        """The routes."""
        router = APIRouter(route_class=guard.route(is_open=True), include_in_schema=False)
        router.add_api_route("/healthz", self.health, methods=["GET"])
        router.add_api_route("/", self.root, methods=["GET"])
        router.add_api_route("/chat", self.page, methods=["GET"])
        router.add_api_route("/chat/{name}", self.file, methods=["GET"])
        return router

    async def health(self) -> Response:
        """200 where questions are answered."""
        _ = self._served.agent  # raises where it is not
        return WholeJSONResponse({"status": "ok"})

    async def root(self) -> Response:
        """Leads to the page."""
        return RedirectResponse("chat")

    async def page(self) -> Response:
        """The page."""
        return self._response("index.html")

    async def file(self, request: Request, name: str) -> Response:
        """A script or style of the page."""
        return self._response(name)

    def _response(self, name: str) -> Response:
        if name not in self._files:
            raise Problem(404, "not_found", "there is no such file")
        headers = {"Content-Security-Policy": _POLICY, "Cache-Control": "no-cache"}
        return Response(self._files[name], media_type=_type_of(name), headers=headers)


def _type_of(name: str) -> str | None:
    return _TYPES.get(name[name.rfind(".") :])
