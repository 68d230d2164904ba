"""Turns over HTTP: ask, edit, regenerate, resume, stop, and follow a stream that was cut off."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query
from starlette.requests import Request
from starlette.responses import Response

from graphrag_agent.adapters.sse import stream_sse
from graphrag_agent.agent import new_thread
from graphrag_agent.conversation.answer import Answer
from graphrag_agent.events import Event
from graphrag_agent.server.bodies import EditBody, NoBody, QuestionBody, ResumeBody, TurnBody, answer_body
from graphrag_agent.server.event_stream import EventStream
from graphrag_agent.server.guard import Guard, principal_of
from graphrag_agent.server.json_response import WholeJSONResponse
from graphrag_agent.server.served import Served

Ask = Callable[[], Coroutine[Any, Any, Answer]]
Stream = Callable[[], AsyncIterator[Event]]


class TurnRoutes:
    """Handlers that begin, follow and stop turns."""

    def __init__(self, served: Served) -> None:
        self._served = served

    def router(self, guard: Guard) -> APIRouter:
        """The routes."""
        router = APIRouter(prefix="/api", route_class=guard.route(), tags=["turns"])
        message = "/threads/{thread}/messages/{message}"
        router.add_api_route("/turns", self.ask, methods=["POST"], response_model=None)
        router.add_api_route("/turns/{turn}/events", self.follow, methods=["GET"], response_model=None)
        router.add_api_route(f"{message}/edit", self.edit, methods=["POST"], response_model=None)
        router.add_api_route(f"{message}/regenerate", self.regenerate, methods=["POST"], response_model=None)
        router.add_api_route("/threads/{thread}/resume", self.resume, methods=["POST"], response_model=None)
        router.add_api_route("/threads/{thread}/stop", self.stop, methods=["POST"])
        return router

    async def ask(self, request: Request, body: QuestionBody) -> Response:
        """Ask in a thread of the caller's, or in a new one."""
        agent, principal, context = self._served.agent, principal_of(request), body.context
        self._served.check_message(body.question)
        if body.thread is not None:
            await self._served.check_owner(body.thread, principal)
        thread = body.thread or new_thread()
        return await self._answer(
            request,
            body,
            lambda: agent.aask(body.question, thread=thread, branch=body.branch, context=context, principal=principal),
            lambda: agent.astream(
                body.question, thread=thread, branch=body.branch, context=context, principal=principal
            ),
        )

    async def edit(self, request: Request, thread: str, message: str, body: EditBody) -> Response:
        """Ask another wording of a question; a branch from before it."""
        agent, principal, context = self._served.agent, principal_of(request), body.context
        self._served.check_message(body.text)
        await self._served.check_owner(thread, principal)
        return await self._answer(
            request,
            body,
            lambda: agent.aedit(message, body.text, thread=thread, context=context, principal=principal),
            lambda: agent.astream_edit(message, body.text, thread=thread, context=context, principal=principal),
        )

    async def regenerate(self, request: Request, thread: str, message: str, body: TurnBody) -> Response:
        """Answer a question again; a branch from before it."""
        agent, principal, context = self._served.agent, principal_of(request), body.context
        await self._served.check_owner(thread, principal)
        return await self._answer(
            request,
            body,
            lambda: agent.aregenerate(message, thread=thread, context=context, principal=principal),
            lambda: agent.astream_regenerate(message, thread=thread, context=context, principal=principal),
        )

    async def resume(self, request: Request, thread: str, body: ResumeBody) -> Response:
        """Go on with the results of the client's tools."""
        agent, principal, context = self._served.agent, principal_of(request), body.context
        await self._served.check_owner(thread, principal)
        return await self._answer(
            request,
            body,
            lambda: agent.aresume(body.results, thread=thread, context=context, principal=principal),
            lambda: agent.astream_resume(body.results, thread=thread, context=context, principal=principal),
        )

    async def follow(
        self,
        request: Request,
        turn: str,
        after: Annotated[str, Query(max_length=200)] = "",
        last_event_id: Annotated[str, Header(max_length=200)] = "",
    ) -> Response:
        """The events of a streamed turn after the one of that id."""
        events = self._served.resume(turn, principal_of(request), last_event_id or after)
        return EventStream(stream_sse(events, heartbeat=self._served.limits.heartbeat_seconds))

    async def stop(self, request: Request, thread: str, body: NoBody) -> dict[str, bool]:
        """Stop the turn that runs on the thread; its question stays, marked as cancelled."""
        principal = principal_of(request)
        if not await self._served.agent.astop(thread, principal=principal):
            await self._served.check_owner(thread, principal)  # a first turn's thread isn't written yet
            return {"stopped": False}
        return {"stopped": True}

    async def _answer(self, request: Request, body: TurnBody, ask: Ask, stream: Stream) -> Response:
        principal = principal_of(request)
        if body.stream:
            events = await self._served.stream(stream, principal)
            return EventStream(stream_sse(events, heartbeat=self._served.limits.heartbeat_seconds))
        return WholeJSONResponse(answer_body(await self._served.collect(request, ask, principal)))
