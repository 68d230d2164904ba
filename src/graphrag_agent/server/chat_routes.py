"""OpenAI's chat completions over the same agent, so that any chat client can talk to it."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from graphrag_agent.adapters.openai_chat import ChatStream, completion_of, stream_chat
from graphrag_agent.adapters.openai_request import (
    ChatRequest,
    OpenAIRequestError,
    error_body,
    models_body,
    read_chat_request,
)
from graphrag_agent.agent import new_thread
from graphrag_agent.conversation.erasing import delete_threads
from graphrag_agent.events import ClientToolsRequested, Event
from graphrag_agent.identity import Principal, owner_of
from graphrag_agent.server.event_stream import EventStream
from graphrag_agent.server.guard import Guard, principal_of
from graphrag_agent.server.json_response import WholeJSONResponse
from graphrag_agent.server.problems import Problem
from graphrag_agent.server.served import Served, safe_event

logger = logging.getLogger(__name__)

MODEL = "graphrag-agent"
_KINDS = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


class ChatRoutes:
    """Handlers of `/v1`."""

    def __init__(self, served: Served) -> None:
        self._served = served

    def router(self, guard: Guard) -> APIRouter:
        """The routes."""
        router = APIRouter(prefix="/v1", route_class=guard.route(render=_openai_body), tags=["OpenAI"])
        router.add_api_route("/models", self.models, methods=["GET"])
        router.add_api_route("/chat/completions", self.complete, methods=["POST"], response_model=None)
        return router

    async def models(self) -> dict[str, Any]:
        """The one model there is: this agent."""
        return models_body([MODEL])

    async def complete(self, request: Request) -> Response:
        """A completion, streamed or whole. The extension `graphrag` brings thread, citations and outcome.

        Without `graphrag.thread` nothing is kept: the client tells the conversation each time.
        """
        try:
            asked = read_chat_request(json.loads(await request.body()), allow_tools=True)
        except OpenAIRequestError as error:
            status, told = error_body(error)
            return WholeJSONResponse(told, status)
        except (ValueError, RecursionError):
            raise Problem(400, "bad_request", "the body is no JSON") from None
        return await self._complete(request, asked)

    async def _complete(self, request: Request, asked: ChatRequest) -> Response:
        principal = principal_of(request)
        if not asked.results:
            self._served.check_message(asked.question)
        self._served.check_messages([asked.question, *asked.results.values(), *(told.text for told in asked.history)])
        if asked.thread is not None:
            await self._served.check_owner(asked.thread, principal)
        created, model = int(time.time()), asked.model or MODEL
        if asked.stream:
            events = await self._served.stream(lambda: self._events(asked, principal), principal)
            chunks = ChatStream(model=model, created=created, include_usage=asked.include_usage)
            return EventStream(stream_chat(events, chunks, heartbeat=self._served.limits.heartbeat_seconds))
        told = await self._served.collect(request, lambda: _all(lambda: self._events(asked, principal)), principal)
        return WholeJSONResponse(completion_of(told, model=model, created=created))

    async def _events(self, asked: ChatRequest, principal: Principal) -> AsyncGenerator[Event, None]:
        agent, thread = self._served.agent, asked.thread or new_thread()
        is_waiting = False
        try:
            if asked.results:
                events = agent.astream_resume(asked.results, thread=thread, context=asked.context, principal=principal)
            else:
                earlier = () if asked.thread else asked.history  # a thread has a history of its own
                events = agent.astream(
                    asked.question, thread=thread, earlier=earlier, context=asked.context, principal=principal
                )
            async with aclosing(events) as own:
                async for event in own:
                    is_waiting = is_waiting or isinstance(event, ClientToolsRequested)
                    yield event
        finally:
            if asked.thread is None and not is_waiting:
                await self._erase(thread, principal)

    async def _erase(self, thread: str, principal: Principal) -> None:
        """Erase what the client will never ask for again. The answer is safe, so a failure is the operator's."""
        try:
            await delete_threads(self._served.saver, [thread], owner=owner_of(principal))
        except Exception as error:
            logger.warning("thread %r may remain: %s: %s", thread, type(error).__name__, error)


async def _all(make: Callable[[], AsyncGenerator[Event, None]]) -> list[Event]:
    """All events of a turn. What breaks it off is raised: a whole answer has a status of its own to tell it by."""
    async with aclosing(make()) as events:
        return [safe_event(event) async for event in events]


def _openai_body(problem: Problem) -> dict[str, Any]:
    kind = _KINDS.get(problem.status, "server_error" if problem.status >= 500 else "invalid_request_error")
    message = f"{problem.message}; {problem.remedy}" if problem.remedy else problem.message
    return {"error": {"message": message, "type": kind, "param": None, "code": problem.code}}
