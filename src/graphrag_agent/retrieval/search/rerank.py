"""A second look at the fused candidates, by a model that reads the query and a passage together.

Opt-in, because query and passages leave the machine. Whatever goes wrong, the fused order stays; note and trace say so.
"""

from __future__ import annotations

import asyncio
import math
import os
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, Protocol, runtime_checkable

from graphrag_agent.documents import Chunk, LegScore
from graphrag_agent.errors import GraphragError, KnowledgeBaseError, SettingsError
from graphrag_agent.retrieval.search.circuit_breaker import CircuitBreaker
from graphrag_agent.retrieval.search.fusion import Ranking
from graphrag_agent.retrieval.tls import tls_context

MAX_CANDIDATES = 50
"""More cost time and money and seldom hold what the first 50 lack; Cohere bills by up to 100."""
RERANK_SECONDS = 10.0
"""For any reranker: half of what the search tool may take, so that the fused order is still there in time."""
COHERE_MODEL = "rerank-v3.5"
"""Multilingual, and older than the others that vendors offer: servers that follow Cohere are likely to know it."""
COHERE_SECONDS = 2.5
"""For both tries together; an answer usually takes a few tenths."""
RETRY_SECONDS = (0.05, 0.2)
"""Random, so that searches which failed together don't come back together."""


@runtime_checkable
class Reranker(Protocol):
    """What a search needs of a reranker."""

    @property
    def name(self) -> str:
        """Shown in the trace."""
        ...

    async def rerank(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """How well each text answers the query, one finite number a text in the order of the texts; more is better."""
        ...


@dataclass(frozen=True, slots=True)
class Reranked:
    """The ranking to go on with."""

    ranking: Ranking
    places: Mapping[str, LegScore] = field(default_factory=dict)
    """Chunk id -> where the reranker put it; empty where there was none or it failed."""
    note: str = ""
    trace: Mapping[str, Any] = field(default_factory=dict)


def resolve_reranker(given: str | Reranker | None, *, model: str = COHERE_MODEL) -> Reranker | None:
    """The reranker that is meant; None for the fused order. Raises SettingsError for an unknown name."""
    if given is None or given == "none":
        return None
    if given == "cohere":
        return CohereReranker(model)
    if isinstance(given, Reranker) and not isinstance(given, str):
        return given
    raise SettingsError(f"unknown reranker {given!r}: use none, cohere or an object with `name` and `rerank`")


async def rerank_candidates(
    reranker: Reranker | None, query: str, fused: Ranking, chunks: Mapping[str, Chunk]
) -> Reranked:
    """The first candidates in the reranker's order, with its scores; those behind them stay where they are."""
    if reranker is None or not fused:
        return Reranked(fused, trace={"skipped": "no reranker" if reranker is None else "no candidates"})
    started = time.perf_counter()
    ids = [chunk_id for chunk_id, _ in fused[:MAX_CANDIDATES]]
    trace: dict[str, Any] = {"name": reranker.name, "candidates": len(ids)}
    try:
        async with asyncio.timeout(RERANK_SECONDS):
            given = await reranker.rerank(query, [chunks[chunk_id].index_text for chunk_id in ids])
        scores = _checked_scores(given, len(ids))
    except Exception as error:  # a model behind a network may fail in any way; the fused order is still good
        told = str(error) if isinstance(error, GraphragError) else f"{type(error).__name__}: {error}".removesuffix(": ")
        note = "The reranker failed, so the passages are in the order of the search itself."
        return Reranked(fused, note=note, trace={**trace, "failed": told, "milliseconds": _milliseconds(started)})
    # sorted is stable: equal scores keep the fused order
    best = sorted(zip(ids, scores, strict=True), key=lambda item: -item[1])
    places = {chunk_id: LegScore(rank, score) for rank, (chunk_id, score) in enumerate(best, start=1)}
    lowest = best[-1][1]
    behind = [(chunk_id, min(score, lowest)) for chunk_id, score in fused[MAX_CANDIDATES:]]
    return Reranked([*best, *behind], places, trace={**trace, "milliseconds": _milliseconds(started)})


class CohereReranker:
    """Cohere's `/v2/rerank`, or a server with its wire form at CO_API_URL.

    Raises SettingsError where neither CO_API_KEY nor CO_API_URL is set.
    """

    def __init__(
        self,
        model: str = COHERE_MODEL,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        seconds: float = COHERE_SECONDS,
        breaker: CircuitBreaker | None = None,
    ) -> None:
        key, url = api_key or os.environ.get("CO_API_KEY"), base_url or os.environ.get("CO_API_URL")
        if not key and not url:
            raise SettingsError("the reranker cohere needs CO_API_KEY, or CO_API_URL for a server of your own")
        if url and not url.startswith(("http://", "https://")):
            raise SettingsError(f"CO_API_URL={url!r}: it must begin with http:// or https://")
        self.name = f"cohere/{model}"
        self._model, self._seconds = model, seconds
        self._breaker = breaker or CircuitBreaker()
        self._client_options: dict[str, Any] = {"api_key": key or "none", **({"base_url": url} if url else {})}
        self._tls: Any = None

    async def rerank(self, query: str, texts: Sequence[str]) -> list[float]:
        if not texts:
            return []
        self._tls = self._tls or await asyncio.to_thread(self._load)
        with self._breaker.watch():
            try:
                async with asyncio.timeout(self._seconds) as limit:
                    return await self._ask_twice(_sendable(query), [_sendable(text) for text in texts], limit)
            except TimeoutError:
                raise KnowledgeBaseError(f"no answer within {self._seconds:g} s") from None

    async def _ask_twice(self, query: str, texts: list[str], limit: asyncio.Timeout) -> list[float]:
        try:
            return await self._ask(query, texts)
        except _TryAgainError as error:
            ends = limit.when() or math.inf
            if asyncio.get_running_loop().time() + error.wait_seconds >= ends:
                raise
            await asyncio.sleep(error.wait_seconds)
        return await self._ask(query, texts)

    async def _ask(self, query: str, texts: list[str]) -> list[float]:
        import httpx
        from cohere.core.api_error import ApiError

        try:
            # a kept connection would belong to one event loop, and searches come too seldom to keep it warm;
            # its own timeouts only stand behind the deadline, which counts the whole call
            async with httpx.AsyncClient(verify=self._tls, timeout=self._seconds + 1) as http:
                reply = await self._client(http).rerank(
                    model=self._model, query=query, documents=texts, request_options={"max_retries": 0}
                )
        except ApiError as error:
            raise _told(error.status_code or 0, error.headers or {}) from error
        except httpx.TransportError as error:
            raise _TryAgainError(f"{type(error).__name__}: {error}") from error
        return _scores_in_order(getattr(reply, "results", None), len(texts))

    def _load(self) -> Any:
        """Import all that the first call needs, and read the certificates: too slow for the event loop."""
        import httpx

        tls = tls_context()
        self._client(httpx.AsyncClient(verify=tls))
        return tls

    def _client(self, http: Any) -> Any:
        from cohere import AsyncClientV2

        return AsyncClientV2(httpx_client=http, **self._client_options)


class _TryAgainError(KnowledgeBaseError):
    """May be gone at the next try."""

    def __init__(self, message: str, shortest_wait: float = 0.0) -> None:
        super().__init__(message)
        self.wait_seconds = shortest_wait + random.uniform(*RETRY_SECONDS)  # noqa: S311  # spreads load, keeps no secret


def _told(status: int, headers: Mapping[str, str]) -> KnowledgeBaseError:
    """Without the body, which may repeat what was sent."""
    message = f"the server answered with status {status}" + (" and no JSON" if status < 300 else "")
    if status != 429 and status < 500:
        return KnowledgeBaseError(message)
    asked = next((value for name, value in headers.items() if name.lower() == "retry-after"), "")
    return _TryAgainError(message, float(asked) if asked.isdecimal() else 0.0)


def _scores_in_order(results: Any, count: int) -> list[float]:
    """The scores in the order of the texts. Raises KnowledgeBaseError unless each text has exactly one."""
    if not isinstance(results, list):
        raise KnowledgeBaseError("the server's answer has no list of results")
    places: list[Any] = [getattr(item, "index", None) for item in results]
    if any(type(place) is not int for place in places) or sorted(places) != list(range(count)):
        raise KnowledgeBaseError(f"the server ranked other texts than the {count} that were sent")
    scores = {item.index: getattr(item, "relevance_score", None) for item in results}
    return _checked_scores([scores[place] for place in range(count)], count)


def _checked_scores(scores: Sequence[Any], count: int) -> list[float]:
    if len(scores) != count:
        raise KnowledgeBaseError(f"the reranker gave {len(scores)} scores for {count} texts")
    for score in scores:
        if not isinstance(score, Real) or isinstance(score, bool) or not math.isfinite(score):
            raise KnowledgeBaseError(f"the reranker gave a score that is no finite number: {score!r}")
    return [float(score) for score in scores]


def _sendable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()  # lone surrogates can't be sent


def _milliseconds(started: float) -> float:
    return round((time.perf_counter() - started) * 1000, 2)
