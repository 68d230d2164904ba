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
from typing import Any

from tests.loopback import LoopbackServer, Reply, Request


@dataclass(frozen=True)
class Failure:
    """A reply with an error status, or a connection that is closed without one (status 0)."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: Any = field(default_factory=lambda: {"message": "told to fail"})


HANGS = Reply(seconds=3600.0)
"""A reply that never comes while the server runs."""
_JSON = {"content-type": "application/json"}


def ranked(scores: Sequence[Any]) -> dict[str, Any]:
    """The reply that gives each document, in the order sent, its score; best first, as Cohere sends them."""
    results = [{"index": index, "relevance_score": score} for index, score in enumerate(scores)]
    results.sort(key=lambda item: -item["relevance_score"] if isinstance(item["relevance_score"], float) else 0)
    return {"id": "fake", "results": results, "meta": {"api_version": {"version": "2"}}}


def by_overlap(body: dict[str, Any]) -> dict[str, Any]:
    """A reply that ranks by the share of the query's words in a document."""
    words = set(body["query"].lower().split())
    return ranked([len(words & set(text.lower().split())) / (len(words) or 1) for text in body["documents"]])


class FakeCohere(LoopbackServer):
    """Answers each request with the next reply; the last one stands for all that follow."""

    def __init__(self, *replies: Any | Callable[[dict[str, Any]], Any]) -> None:
        super().__init__()
        self.replies = replies or (by_overlap,)
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self._lock = threading.Lock()

    def answer(self, request: Request) -> Reply:
        body = json.loads(request.body)
        with self._lock:
            self.paths.append(request.path)
            self.headers.append(request.headers)
            self.bodies.append(body)
            told = self.replies[min(len(self.bodies), len(self.replies)) - 1]
        if request.path != "/v2/rerank":
            return Reply(404)
        told = told(body) if callable(told) else told
        if isinstance(told, Reply):
            return told
        if isinstance(told, Failure):
            return Reply(told.status, told.body, {**_JSON, **told.headers})
        return Reply(200, told, _JSON)
