"""`create_app`: the agent as a FastAPI app, to run alone or inside another one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from fastapi import APIRouter, FastAPI
from fastapi.middleware.cors import CORSMiddleware
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from graphrag_agent.agent import RagAgent
from graphrag_agent.errors import SettingsError
from graphrag_agent.knowledge_opening import LazyKnowledge, home_of, open_knowledge_base
from graphrag_agent.persistence.checkpointers import checkpointer_from
from graphrag_agent.server.chat_routes import ChatRoutes
from graphrag_agent.server.guard import HEADERS, Guard
from graphrag_agent.server.json_response import WholeJSONResponse
from graphrag_agent.server.limits import Limits
from graphrag_agent.server.page_routes import PageRoutes
from graphrag_agent.server.problems import problem_of
from graphrag_agent.server.served import Served
from graphrag_agent.server.thread_routes import ThreadRoutes
from graphrag_agent.server.tokens import Authenticate
from graphrag_agent.server.turn_routes import TurnRoutes
from graphrag_agent.settings import Settings
from graphrag_agent.tools.knowledge_search import Readable


def create_app(
    source: RagAgent | Settings,
    *,
    knowledge: Readable | None = None,
    authenticate: Authenticate | None = None,
    limits: Limits | None = None,
    origins: Collection[str] = (),
    is_mounted: bool = False,
) -> FastAPI:
    """The agent over HTTP, with a page to try it.

    `source`: an agent, with its `knowledge` for the passages behind old citations; or settings, from which both are
    opened when the app starts. `authenticate` gives the principal of a bearer token; without it only this machine is
    answered. `origins`: pages of these sites may call it. `is_mounted`: another app, LangGraph's server say, takes
    the routes into its own, so nothing is set that would change that app's.
    """
    if is_mounted and origins:
        raise SettingsError("origins can't be set where the app is mounted; set CORS at the app that it is mounted in")
    limits = limits or Limits()
    served = Served(limits)
    guard = Guard(authenticate, limits, origins)
    app = FastAPI(
        title="graphrag-agent",
        docs_url=None,  # that page loads its scripts from elsewhere
        redoc_url=None,
        openapi_url=None,  # FastAPI's own route is not guarded
        default_response_class=WholeJSONResponse,
        lifespan=_lifespan(served, source, knowledge),
    )
    for routes in (ThreadRoutes(served), TurnRoutes(served), ChatRoutes(served), PageRoutes(served)):
        app.include_router(routes.router(guard))
    app.include_router(_schema_router(app, guard))
    if not is_mounted:
        app.add_exception_handler(HTTPException, _unknown_route)
    if origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=[origin.rstrip("/") for origin in origins],
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["Authorization", "Content-Type", "Last-Event-ID"],
        )
    return app


def _schema_router(app: FastAPI, guard: Guard) -> APIRouter:
    async def schema(request: Request) -> Response:
        root = str(request.scope.get("root_path", "")).rstrip("/")
        return WholeJSONResponse({**app.openapi(), **({"servers": [{"url": root}]} if root else {})})

    router = APIRouter(route_class=guard.route(), include_in_schema=False)
    router.add_api_route("/api/openapi.json", schema, methods=["GET"])
    return router


def _lifespan(
    served: Served, source: RagAgent | Settings, knowledge: Readable | None
) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with _opened(source, knowledge) as (agent, readable):
            served.open(agent, readable)
            try:
                yield
            finally:
                await served.close()

    return lifespan


@asynccontextmanager
async def _opened(
    source: RagAgent | Settings, knowledge: Readable | None
) -> AsyncIterator[tuple[RagAgent, Readable | None]]:
    if isinstance(source, RagAgent):
        yield source, knowledge
        return
    settings = source
    own = LazyKnowledge(lambda: open_knowledge_base(settings))
    folder = home_of(settings)
    await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
    async with checkpointer_from(settings, folder) as saver:
        agent = await asyncio.to_thread(lambda: RagAgent(knowledge=own, checkpointer=saver, settings=settings))
        try:
            yield agent, own
        finally:
            await own.aclose()


async def _unknown_route(request: Request, error: Exception) -> Response:
    """Paths and methods that no route has."""
    problem = problem_of(error)
    return WholeJSONResponse(problem.body(), problem.status, {**HEADERS, **problem.headers})
