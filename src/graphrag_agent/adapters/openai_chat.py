"""A turn's events in the form of OpenAI's chat completions: chunks of a stream, or one completion."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import asdict
from typing import Any

from graphrag_agent.adapters.openai_request import EXTENSION, error_body
from graphrag_agent.adapters.sse import HEARTBEAT, HEARTBEAT_SECONDS, sse_message, with_pauses
from graphrag_agent.errors import GraphragError
from graphrag_agent.events import (
    CUT_OFF,
    AnswerReady,
    ClientToolsRequested,
    ErrorRaised,
    Event,
    TextDelta,
    ThinkingDelta,
    ToolEnd,
    ToolProgress,
    ToolStart,
    TurnEnded,
    TurnStarted,
)

FINISH = {"refused": "content_filter", "cancelled": "stop"}
"""Ending -> finish reason, where it isn't "stop"; a turn that ran out of rounds still ends in an answer."""


class ChatStream:
    """Turns events into chunks, one event at a time."""

    def __init__(self, *, model: str, created: int, show_tools: bool = False, include_usage: bool = False) -> None:
        self._model = model
        self._created = created
        self._show_tools = show_tools
        self._include_usage = include_usage
        self._id = "chatcmpl-"
        self._message = ""
        self._written = ""
        self._extension: dict[str, Any] = {}
        self._finish = "stop"

    def chunks(self, event: Event) -> Iterator[dict[str, Any]]:
        """The chunks that this event makes; none for most."""
        if isinstance(event, TurnStarted):
            self._id = f"chatcmpl-{event.turn}"
            self._extension = {"thread": event.thread, "question_id": event.question_id}
            yield self._chunk({"role": "assistant", "content": ""}, told=self._extension)
        elif isinstance(event, TextDelta):
            if self._message not in ("", event.message_id):
                yield from self._text("\n\n")  # what it said before it searched stands above
            self._message = event.message_id
            yield from self._text(event.text)
        elif isinstance(event, ThinkingDelta) and self._show_tools:
            yield self._chunk({"reasoning_content": event.text})
        elif isinstance(event, ToolStart | ToolProgress | ToolEnd) and self._show_tools:
            yield self._chunk({}, told={"event": event.as_dict()})
        elif isinstance(event, ClientToolsRequested):
            self._finish = "tool_calls"
            yield self._chunk({"tool_calls": [_call(at, call) for at, call in enumerate(event.calls)]})
            yield from self._end({})
        elif isinstance(event, AnswerReady):
            # not streamed: the only answer, or a better one behind the first, since the protocol can't take text back
            if event.message_id != self._message:
                yield from self._text(f"\n\n{event.text}" if self._written else event.text)
            self._extension |= _answer_fields(event)
        elif isinstance(event, TurnEnded):
            self._finish = _finish_of(event.outcome)
            self._extension["outcome"] = dict(event.outcome)
            yield from self._end(event.outcome)
        elif isinstance(event, ErrorRaised):
            yield error_body(GraphragError(event.message))[1]

    def _text(self, text: str) -> Iterator[dict[str, Any]]:
        self._written += text
        yield self._chunk({"content": text})

    def _end(self, outcome: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        yield self._chunk({}, finish=self._finish, told=self._extension)
        if self._include_usage:
            yield {**self._chunk({}), "choices": [], "usage": usage_of(outcome)}

    def _chunk(
        self, delta: dict[str, Any], *, finish: str | None = None, told: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        chunk: dict[str, Any] = {
            "id": self._id,
            "object": "chat.completion.chunk",
            "created": self._created,
            "model": self._model,
            "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}],
        }
        return {**chunk, EXTENSION: dict(told)} if told else chunk


async def stream_chat(
    events: AsyncIterator[Event], stream: ChatStream, *, heartbeat: float = HEARTBEAT_SECONDS
) -> AsyncGenerator[bytes, None]:
    """The bytes of a streamed completion. An error before the first event is raised, so that a status can tell it."""
    is_told = False
    try:
        async with aclosing(with_pauses(events, heartbeat)) as paced:
            async for event in paced:
                if event is None:
                    yield HEARTBEAT
                    continue
                is_told = is_told or isinstance(event, ErrorRaised)
                for chunk in stream.chunks(event):
                    yield sse_message(json.dumps(chunk, ensure_ascii=False, default=str))
    except Exception:
        if not is_told:
            raise
    yield sse_message("[DONE]")


def _finish_of(outcome: Mapping[str, Any]) -> str:
    usual = "length" if CUT_OFF in outcome.get("warnings", ()) else "stop"
    return FINISH.get(str(outcome.get("ending")), usual)


def completion_of(events: Iterable[Event], *, model: str, created: int, show_tools: bool = False) -> dict[str, Any]:
    """One completion from all events of a turn. Raises GraphragError where an error ended it."""
    message: dict[str, Any] = {"role": "assistant", "content": "", "refusal": None}
    extension: dict[str, Any] = {}
    outcome: Mapping[str, Any] = {}
    id_, finish, tools = "chatcmpl-", "stop", list[dict[str, Any]]()
    for event in events:
        if isinstance(event, TurnStarted):
            id_ = f"chatcmpl-{event.turn}"
            extension = {"thread": event.thread, "question_id": event.question_id}
        elif isinstance(event, ClientToolsRequested):
            message |= {"content": None, "tool_calls": [_call(None, call) for call in event.calls]}
            finish = "tool_calls"
        elif isinstance(event, AnswerReady):
            message["content"] = event.text
            extension |= _answer_fields(event)
        elif isinstance(event, TurnEnded):
            outcome = event.outcome
            finish = _finish_of(outcome)
        elif isinstance(event, ToolStart | ToolProgress | ToolEnd):
            tools.append(event.as_dict())
        elif isinstance(event, ErrorRaised):
            raise GraphragError(event.message)
    extension |= {"outcome": dict(outcome)} | ({"events": tools} if show_tools else {})
    return {
        "id": id_,
        "object": "chat.completion",
        "created": created,
        "model": model,
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": finish}],
        "usage": usage_of(outcome),
        EXTENSION: extension,
    }


def usage_of(outcome: Mapping[str, Any]) -> dict[str, int]:
    """Tokens of all model calls of the turn, as the provider told them."""
    tokens = outcome.get("tokens") or {}
    prompt, completion = int(tokens.get("input", 0)), int(tokens.get("output", 0))
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def _answer_fields(event: AnswerReady) -> dict[str, Any]:
    return {
        "answer": event.text,
        "message_id": event.message_id,
        "citations": [asdict(citation) for citation in event.citations],
    }


def _call(index: int | None, call: Mapping[str, Any]) -> dict[str, Any]:
    arguments = json.dumps(call.get("args") or {}, ensure_ascii=False, default=str)
    told = {"id": call["id"], "type": "function", "function": {"name": call["name"], "arguments": arguments}}
    return told if index is None else {"index": index, **told}
