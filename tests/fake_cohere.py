"""A small server with Cohere's `/v2/rerank` on loopback, for tests over real HTTP.

    with FakeCohere(ranked([0.1, 0.9])) as server:
        CohereReranker("some-model", api_key="k", base_url=server.base_url)

A reply is a body (bytes, or what JSON is made of), a `Failure`, or a function of the request's body.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeAlias


@dataclass(frozen=True)
class Failure:
    """A reply with an error status, or a connection that is closed without one (status 0)."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: Any = field(default_factory=lambda: {"message": "told to fail"})


HANGS = object()
"""A reply that never comes while the server runs."""

Reply: TypeAlias = Any


def ranked(scores: Sequence[Any]) -> dict[str, Any]:
    """The reply that gives each document, in the order sent, its score; best first, as Cohere sends them."""
    results = [{"index": index, "relevance_score": score} for index, score in enumerate(scores)]
    results.sort(key=lambda item: -item["relevance_score"] if isinstance(item["relevance_score"], float) else 0)
    return {"id": "fake", "results": results, "meta": {"api_version": {"version": "2"}}}


def by_overlap(body: dict[str, Any]) -> dict[str, Any]:
    """A reply that ranks by the share of the query's words in a document."""
    words = set(body["query"].lower().split())
    return ranked([len(words & set(text.lower().split())) / (len(words) or 1) for text in body["documents"]])


class FakeCohere:
    """Answers each request with the next reply; the last one stands for all that follow."""

    def __init__(self, *replies: Reply | Callable[[dict[str, Any]], Reply]) -> None:
        self.replies = replies or (by_overlap,)
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.stopping = threading.Event()
        self._lock = threading.Lock()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> FakeCohere:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._server.daemon_threads = True
        self._server.fake = self
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, path: str, headers: dict[str, str], body: dict[str, Any]) -> Reply:
        with self._lock:
            self.paths.append(path)
            self.headers.append(headers)
            self.bodies.append(body)
            reply = self.replies[min(len(self.bodies), len(self.replies)) - 1]
        if path != "/v2/rerank":
            return Failure(404)
        return reply(body) if callable(reply) else reply


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        headers = {name.lower(): value for name, value in self.headers.items()}
        reply = self.server.fake.answer(self.path, headers, body)
        if reply is HANGS:
            self.server.fake.stopping.wait()
        if reply is HANGS or (isinstance(reply, Failure) and reply.status == 0):
            self.close_connection = True
        elif isinstance(reply, Failure):
            self._send(reply.status, reply.body, reply.headers)
        else:
            self._send(200, reply, {})

    def _send(self, status: int, body: Any, headers: dict[str, str]) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"content-type": "application/json", "content-length": str(len(data)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass
