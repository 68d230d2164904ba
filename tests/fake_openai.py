"""A small OpenAI-compatible server on loopback, for tests over real HTTP.

    with FakeOpenAI(tool_message(("knowledge_search", {"query": "a"})), "done") as server:
        ChatOpenAI(base_url=server.base_url, ...)

Connections are kept alive, as real servers do: errors of clients that outlive their event loop show up here.
Steps besides texts and messages: `Completion` (how the message ends, its usage), `RawStream` (the very bytes of
a stream, cut off or not), `RawBody` and `HTTPFailure`.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tests.loopback import LoopbackHandler, LoopbackServer, Reply, Request

PIECE_CHARACTERS = 7
PAUSE_SECONDS = 0.001
"""Between two events: they arrive one by one, as a model's tokens do."""

USAGE = {"prompt_tokens": 11, "completion_tokens": 5, "total_tokens": 16}


@dataclass(frozen=True)
class HTTPFailure:
    """A step that answers with an error status."""

    status: int
    message: str = "the fake server was told to fail"
    headers: dict[str, str] = field(default_factory=dict)
    body: Any = None
    """Instead of the usual `{"error": {...}}`."""


@dataclass(frozen=True)
class Completion:
    """A step that answers with this message; `finish_reason` "" is left out, and so is a usage of None."""

    message: dict[str, Any]
    finish_reason: str | None = None
    usage: dict[str, Any] | None = field(default_factory=lambda: dict(USAGE))
    service_tier: str | None = None


@dataclass(frozen=True)
class RawStream:
    """A step that streams these events, or bytes as they are; cut off, the connection breaks before the body's end."""

    events: Sequence[dict[str, Any] | bytes]
    is_cut: bool = False
    is_done: bool = True
    """Whether `[DONE]` follows."""
    pause_seconds: float = PAUSE_SECONDS
    line_end: bytes = b"\n"


@dataclass(frozen=True)
class RawBody:
    """A step that answers with this body whatever was asked for."""

    data: bytes
    content_type: str = "application/json"
    status: int = 200


Step: TypeAlias = str | dict[str, Any] | HTTPFailure | Completion | RawStream | RawBody


def delta(finish_reason: str | None = None, **fields: Any) -> dict[str, Any]:
    """One event of a stream: what its delta says."""
    choice = {"index": 0, "delta": fields, "finish_reason": finish_reason}
    return {
        "id": "chatcmpl-fake",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "local",
        "choices": [choice],
    }


def tool_message(*calls: tuple[str, dict[str, Any] | str], content: str | None = None) -> dict[str, Any]:
    """An assistant message with tool calls; arguments given as text are sent as they are."""
    return {
        "role": "assistant",
        "content": content,
        "tool_calls": [
            {
                "id": f"call_{place}",
                "type": "function",
                "function": {
                    "name": name,
                    "arguments": given if isinstance(given, str) else json.dumps(given, ensure_ascii=False),
                },
            }
            for place, (name, given) in enumerate(calls, start=1)
        ],
    }


class FakeOpenAI(LoopbackServer):
    """Answers each request with the next step, or with what a callable step makes of the body.

    A callable as the only step answers every request. Requests beyond the steps get status 500.
    """

    def __init__(self, *steps: Step | Callable[[dict[str, Any]], Any]) -> None:
        super().__init__()
        self.steps = steps
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.connections: set[int] = set()
        self._lock = threading.Lock()
        self.handler = _Handler

    @property
    def base_url(self) -> str:
        return f"{super().base_url}/v1"

    def next_step(self, request: Request, body: dict[str, Any]) -> Any:
        with self._lock:
            self.paths.append(request.path)
            self.headers.append(request.headers)
            self.bodies.append(body)
            at = len(self.bodies) - 1
        if not request.path.partition("?")[0].endswith("/chat/completions"):
            return HTTPFailure(404, f"no such path: {request.path}")
        always = len(self.steps) == 1 and callable(self.steps[0])
        if at >= len(self.steps) and not always:
            return HTTPFailure(500, f"request {at + 1}, but the script has {len(self.steps)} steps")
        step = self.steps[0 if always else at]
        step = step(body) if callable(step) else step
        if isinstance(step, str):
            step = {"role": "assistant", "content": step}
        return Completion(step) if isinstance(step, dict) else step


class _Handler(LoopbackHandler):
    def do_POST(self) -> None:  # noqa: N802  # the base class's name
        fake: FakeOpenAI = self.server.fake  # type: ignore[attr-defined]
        request = self.request_here()
        body = json.loads(request.body)
        fake.connections.add(self.client_address[1])
        step = fake.next_step(request, body)
        if isinstance(step, HTTPFailure):
            usual = {"error": {"message": step.message, "type": "fake", "code": None}}
            self.send(Reply(step.status, step.body or usual, step.headers))
        elif isinstance(step, RawBody):
            self.send(Reply(step.status, step.data, {"content-type": step.content_type}))
        elif isinstance(step, RawStream):
            self._send_stream(step)
        elif body.get("stream"):
            self._send_stream(RawStream(list(_completion_chunks(body, step))))
        else:
            self.send(Reply(body=_completion(body, step)))

    def _send_stream(self, stream: RawStream) -> None:
        self.begin(200, {"content-type": "text/event-stream", "transfer-encoding": "chunked"})
        try:
            for data in _stream_bytes(stream):
                self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
                time.sleep(stream.pause_seconds)
            if stream.is_cut:
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
            else:
                self.wfile.write(b"0\r\n\r\n")
        except OSError:  # the client has left
            self.close_connection = True


def _stream_bytes(stream: RawStream) -> Iterable[bytes]:
    end = stream.line_end
    for event in stream.events:
        yield event if isinstance(event, bytes) else b"data: " + json.dumps(event).encode() + end + end
    if stream.is_done and not stream.is_cut:
        yield b"data: [DONE]" + end + end


def _head(body: dict[str, Any], reply: Completion, kind: str) -> dict[str, Any]:
    head = {"id": "chatcmpl-fake", "object": kind, "created": 1, "model": body["model"]}
    return {**head, "service_tier": reply.service_tier} if reply.service_tier else head


def _completion(body: dict[str, Any], reply: Completion) -> dict[str, Any]:
    choice = {"index": 0, "message": reply.message, "finish_reason": _finish_reason(reply)}
    whole = {**_head(body, reply, "chat.completion"), "choices": [choice]}
    return {**whole, "usage": reply.usage} if reply.usage else whole


def _completion_chunks(body: dict[str, Any], reply: Completion) -> Iterator[dict[str, Any]]:
    head = _head(body, reply, "chat.completion.chunk")
    for told in _deltas(reply.message):
        yield {**head, "choices": [{"index": 0, "delta": told, "finish_reason": None}]}
    yield {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": _finish_reason(reply)}]}
    if reply.usage and (body.get("stream_options") or {}).get("include_usage"):
        yield {**head, "choices": [], "usage": reply.usage}


def _deltas(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant", "content": ""}
    for name in ("reasoning_content", "refusal"):
        if message.get(name):
            yield {name: message[name]}
    content = message.get("content") or ""
    for piece in _cut(content) if isinstance(content, str) else [[block] for block in content]:
        yield {"content": piece}
    for index, call in enumerate(message.get("tool_calls") or ()):
        function = {"name": call["function"]["name"], "arguments": ""}
        yield {"tool_calls": [{"index": index, "id": call["id"], "type": "function", "function": function}]}
        for piece in _cut(call["function"]["arguments"]):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def _finish_reason(reply: Completion) -> str | None:
    usual = "tool_calls" if reply.message.get("tool_calls") else "stop"
    return usual if reply.finish_reason is None else reply.finish_reason or None


def _cut(text: str) -> list[str]:
    return [text[at : at + PIECE_CHARACTERS] for at in range(0, len(text), PIECE_CHARACTERS)]
