"""A small OpenAI-compatible server on loopback, for tests over real HTTP.

    with FakeOpenAI(tool_message(("knowledge_search", {"query": "a"})), "done") as server:
        ChatOpenAI(base_url=server.base_url, ...)

Connections are kept alive, as real servers do: errors of clients that outlive their event loop show up here.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PIECE_CHARACTERS = 7
USAGE = {"prompt_tokens": 11, "completion_tokens": 5, "total_tokens": 16}


@dataclass(frozen=True)
class HTTPFailure:
    """A step that answers with an error status."""

    status: int
    message: str = "the fake server was told to fail"


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

    def __init__(self, *steps: str | dict[str, Any] | HTTPFailure | Callable[[dict[str, Any]], Any]) -> None:
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

    def answer(self, path: str, headers: dict[str, str], body: dict[str, Any]) -> dict[str, Any] | HTTPFailure:
        with self._lock:
            self.paths.append(path)
            self.headers.append(headers)
            self.bodies.append(body)
            at = len(self.bodies) - 1
        if not path.endswith("/chat/completions"):
            return HTTPFailure(404, f"no such path: {path}")
        always = len(self.steps) == 1 and callable(self.steps[0])
        if at >= len(self.steps) and not always:
            return HTTPFailure(500, f"request {at + 1}, but the script has {len(self.steps)} steps")
        step = self.steps[0 if always else at]
        step = step(body) if callable(step) else step
        return {"role": "assistant", "content": step} if isinstance(step, str) else step


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.fake.connections.add(self.client_address[1])
        reply = self.server.fake.answer(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
        if isinstance(reply, HTTPFailure):
            self._send_json(reply.status, {"error": {"message": reply.message, "type": "fake", "code": None}})
        elif body.get("stream"):
            self._send_stream(_completion_chunks(body, reply))
        else:
            self._send_json(200, _completion(body, reply))

    def _send_json(self, status: int, value: dict[str, Any]) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _send_stream(self, chunks: Iterator[dict[str, Any]]) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for event in [*map(json.dumps, chunks), "[DONE]"]:
            data = f"data: {event}\n\n".encode()
            self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, *_: object) -> None:
        pass


def _completion(body: dict[str, Any], message: dict[str, Any]) -> dict[str, Any]:
    choice = {"index": 0, "message": message, "finish_reason": _finish_reason(message)}
    head = {"id": "chatcmpl-fake", "object": "chat.completion", "created": 1, "model": body["model"]}
    return {**head, "choices": [choice], "usage": USAGE}


def _completion_chunks(body: dict[str, Any], message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    head = {"id": "chatcmpl-fake", "object": "chat.completion.chunk", "created": 1, "model": body["model"]}
    for delta in _deltas(message):
        yield {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": _finish_reason(message)}]}
    if (body.get("stream_options") or {}).get("include_usage"):
        yield {**head, "choices": [], "usage": USAGE}


def _deltas(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant", "content": ""}
    for piece in _cut(message.get("content") or ""):
        yield {"content": piece}
    for index, call in enumerate(message.get("tool_calls") or ()):
        function = {"name": call["function"]["name"], "arguments": ""}
        yield {"tool_calls": [{"index": index, "id": call["id"], "type": "function", "function": function}]}
        for piece in _cut(call["function"]["arguments"]):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def _finish_reason(message: dict[str, Any]) -> str:
    return "tool_calls" if message.get("tool_calls") else "stop"


def _cut(text: str) -> list[str]:
    return [text[at : at + PIECE_CHARACTERS] for at in range(0, len(text), PIECE_CHARACTERS)]
