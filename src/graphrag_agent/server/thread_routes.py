"""Threads over HTTP: begin, list, read and delete them; another's thread is as unknown as one that isn't there."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from graphrag_agent.agent import new_thread
from graphrag_agent.conversation.erasing import delete_threads
from graphrag_agent.identity import OWNER_KEY, owner_of
from graphrag_agent.persistence.threads import list_threads
from graphrag_agent.server.bodies import NoBody, messages_body, threads_body
from graphrag_agent.server.guard import Guard, principal_of
from graphrag_agent.server.served import Served

Id = Annotated[str | None, Query(max_length=128)]


class ThreadRoutes:
    """Handlers of `/api/threads`."""

    def __init__(self, served: Served) -> None:
        self._served = served

    def router(self, guard: Guard) -> APIRouter:
        """The routes."""
        router = APIRouter(prefix="/api/threads", route_class=guard.route(), tags=["threads"])
        router.add_api_route("", self.create, methods=["POST"], status_code=201)
        router.add_api_route("", self.list_own, methods=["GET"])
        router.add_api_route("/{thread}", self.read, methods=["GET"])
        router.add_api_route("/{thread}", self.delete, methods=["DELETE"], status_code=204)
        return router

    async def create(self, request: Request, body: NoBody) -> dict[str, Any]:
        """Begin an empty thread."""
        thread, owner = new_thread(), owner_of(principal_of(request))
        graph = self._served.agent.graph
        # a finished point without a turn, which is the owner's from now on
        config = {"configurable": {"thread_id": thread}, "metadata": {OWNER_KEY: owner}}
        await graph.aupdate_state(config, {"outcome": {}}, as_node="commit_answer")  # type: ignore[arg-type]
        return {"id": thread}

    async def list_own(
        self, request: Request, limit: Annotated[int, Query(ge=1, le=100)] = 30, after: Id = None
    ) -> dict[str, Any]:
        """The caller's threads, the last used first; `next` is the `after` of the next page."""
        served = self._served
        page = await list_threads(
            served.agent.graph,
            served.saver,
            owner=owner_of(principal_of(request)),
            limit=min(limit, served.limits.max_threads_per_page),
            after=after or "",
        )
        return threads_body(page)

    async def read(self, request: Request, thread: str, branch: Id = None) -> dict[str, Any]:
        """Questions, answers and branches of a thread, and the turn that runs on it."""
        served, principal = self._served, principal_of(request)
        await served.check_owner(thread, principal)
        agent = served.agent
        messages = await agent.ahistory(thread, branch=branch, principal=principal)
        branches = await agent.abranches(thread, principal=principal)
        return {
            "id": thread,
            "messages": await messages_body(messages, served.knowledge, principal),
            "branches": [asdict(found) for found in branches],
            "running_turn": served.running_turn(thread),
        }

    async def delete(self, request: Request, thread: str) -> Response:
        """Stop what runs on the thread or waits for it, and erase it."""
        served, principal = self._served, principal_of(request)
        await served.check_owner(thread, principal)
        await delete_threads(served.saver, [thread], owner=owner_of(principal))
        return Response(status_code=204)
