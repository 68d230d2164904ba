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
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeAlias

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


class FakeOpenAI:
    """Answers each request with the next step, or with what a callable step makes of the body.

    A callable as the only step answers every request. Requests beyond the steps get status 500.
    """

    def __init__(self, *steps: Step | Callable[[dict[str, Any]], Any]) -> None:
        self.steps = steps
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.connections: set[int] = set()
        self._lock = threading.Lock()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> FakeOpenAI:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._server.daemon_threads = True
        self._server.fake = self
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, path: str, headers: dict[str, str], body: dict[str, Any]) -> Any:
        with self._lock:
            self.paths.append(path)
            self.headers.append(headers)
            self.bodies.append(body)
            at = len(self.bodies) - 1
        if not path.partition("?")[0].endswith("/chat/completions"):
            return HTTPFailure(404, f"no such path: {path}")
        always = len(self.steps) == 1 and callable(self.steps[0])
        if at >= len(self.steps) and not always:
            return HTTPFailure(500, f"request {at + 1}, but the script has {len(self.steps)} steps")
        step = self.steps[0 if always else at]
        step = step(body) if callable(step) else step
        if isinstance(step, str):
            step = {"role": "assistant", "content": step}
        return Completion(step) if isinstance(step, dict) else step


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else the pieces of a second answer wait for each other

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.fake.connections.add(self.client_address[1])
        reply = self.server.fake.answer(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
        if isinstance(reply, HTTPFailure):
            usual = {"error": {"message": reply.message, "type": "fake", "code": None}}
            self._send(reply.status, json.dumps(reply.body or usual).encode(), "application/json", reply.headers)
        elif isinstance(reply, RawBody):
            self._send(reply.status, reply.data, reply.content_type)
        elif isinstance(reply, RawStream):
            self._send_stream(reply)
        elif body.get("stream"):
            self._send_stream(RawStream(list(_completion_chunks(body, reply))))
        else:
            self._send(200, json.dumps(_completion(body, reply)).encode(), "application/json")

    def _send(self, status: int, data: bytes, content_type: str, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"content-type": content_type, "content-length": str(len(data)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def _send_stream(self, stream: RawStream) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
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

    def log_message(self, *_: object) -> None:
        pass


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
