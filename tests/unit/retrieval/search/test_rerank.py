from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy
import pytest

from graphrag_agent.documents import Chunk, LegScore
from graphrag_agent.errors import KnowledgeBaseError, SettingsError
from graphrag_agent.retrieval.search.circuit_breaker import CircuitBreaker
from graphrag_agent.retrieval.search.rerank import (
    MAX_CANDIDATES,
    CohereReranker,
    rerank_candidates,
    resolve_reranker,
)
from tests.fake_cohere import HANGS, Failure, FakeCohere, by_overlap, ranked

TEXTS = ("rain on the roof", "the gate is shut", "the pump hums")
FUSED = [("roof", 1.5), ("gate", 1.2), ("pump", 0.7)]


class Scripted:
    name = "scripted"

    def __init__(self, scores: Callable[[Sequence[str]], Any]) -> None:
        self.calls: list[tuple[str, list[str]]] = []
        self._scores = scores

    async def rerank(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        self.calls.append((query, list(texts)))
        return self._scores(texts)  # type: ignore[no-any-return]


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def chunk(name: str, text: str) -> Chunk:
    return Chunk(name, "d", "acme", "c", (), f"{name}.md", "md", "Title", "", None, 0, text, 0, len(text))


CHUNKS = {name: chunk(name, text) for (name, _), text in zip(FUSED, TEXTS, strict=True)}


def reranker(server: FakeCohere, **options: Any) -> CohereReranker:
    return CohereReranker("rerank-test", api_key="secret", base_url=server.base_url, **options)


async def test_candidates_take_the_rerankers_order_and_scores() -> None:
    given = Scripted(lambda texts: numpy.array([0.1, 0.2, 0.9], dtype="float32"))
    result = await rerank_candidates(given, "pump", FUSED, CHUNKS)
    assert [name for name, _ in result.ranking] == ["pump", "gate", "roof"]
    assert result.ranking[0][1] == pytest.approx(0.9)
    assert result.places["pump"] == LegScore(1, result.ranking[0][1])
    assert {name: place.rank for name, place in result.places.items()} == {"pump": 1, "gate": 2, "roof": 3}
    assert given.calls == [("pump", [f"Title\n{text}" for text in TEXTS])]
    assert (result.note, result.trace["name"], result.trace["candidates"]) == ("", "scripted", 3)


async def test_equal_scores_keep_the_fused_order() -> None:
    result = await rerank_candidates(Scripted(lambda texts: [0.5] * len(texts)), "q", FUSED, CHUNKS)
    assert [name for name, _ in result.ranking] == [name for name, _ in FUSED]


@pytest.mark.parametrize("lowest", [0.0, -7.0])
async def test_candidates_beyond_the_most_are_not_sent_and_stay_behind(lowest: float) -> None:
    many = {f"c{place:03}": chunk(f"c{place:03}", f"text {place}") for place in range(MAX_CANDIDATES + 9)}
    fused = [(name, 2.0 - place / 100) for place, name in enumerate(many)]
    given = Scripted(lambda texts: [lowest + place for place in range(len(texts))])
    result = await rerank_candidates(given, "q", fused, many)
    assert len(given.calls[0][1]) == MAX_CANDIDATES
    assert [name for name, _ in result.ranking[MAX_CANDIDATES:]] == list(many)[MAX_CANDIDATES:]
    scores = [score for _, score in result.ranking]
    assert scores == sorted(scores, reverse=True)
    assert len(result.places) == MAX_CANDIDATES


async def test_without_candidates_or_reranker_nobody_is_asked() -> None:
    given = Scripted(lambda texts: [])
    assert (await rerank_candidates(given, "q", [], {})).trace == {"skipped": "no candidates"}
    assert given.calls == []
    alone = await rerank_candidates(None, "q", FUSED, CHUNKS)
    assert (list(alone.ranking), alone.trace) == (FUSED, {"skipped": "no reranker"})


def _raises(texts: Sequence[str]) -> Any:
    raise ConnectionError("no route")


@pytest.mark.parametrize(
    ("scores", "reason"),
    [
        (_raises, "ConnectionError: no route"),
        (lambda texts: [0.1], "1 scores for 3 texts"),
        (lambda texts: [0.1, 0.2, math.nan], "no finite number: nan"),
        (lambda texts: [0.1, 0.2, math.inf], "no finite number: inf"),
        (lambda texts: [0.1, 0.2, "0.3"], "no finite number: '0.3'"),
        (lambda texts: [0.1, 0.2, True], "no finite number: True"),
        (lambda texts: None, "TypeError"),
    ],
    ids=["raises", "missing", "nan", "infinite", "text", "boolean", "none"],
)
async def test_a_reranker_that_fails_leaves_the_fused_order(scores: Callable[[Any], Any], reason: str) -> None:
    result = await rerank_candidates(Scripted(scores), "q", FUSED, CHUNKS)
    assert (list(result.ranking), result.places) == (FUSED, {})
    assert result.note == "The reranker failed, so the passages are in the order of the search itself."
    assert reason in result.trace["failed"]


async def test_a_hanging_reranker_of_ones_own_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    class Hanging(Scripted):
        async def rerank(self, query: str, texts: Sequence[str]) -> Sequence[float]:
            await asyncio.sleep(60)
            return []

    monkeypatch.setattr("graphrag_agent.retrieval.search.rerank.RERANK_SECONDS", 0.01)
    result = await rerank_candidates(Hanging(_raises), "q", FUSED, CHUNKS)
    assert (list(result.ranking), result.trace["failed"]) == (FUSED, "TimeoutError")


async def test_the_request_is_coheres() -> None:
    with FakeCohere() as server:
        scores = await reranker(server).rerank("pump \ud800", [*TEXTS, "水泵 \udfff"])
    assert server.paths == ["/v2/rerank"]
    assert server.bodies == [{"model": "rerank-test", "query": "pump ?", "documents": [*TEXTS, "水泵 ?"]}]
    assert server.headers[0]["authorization"] == "Bearer secret"
    assert scores == [0.0, 0.0, 0.5, 0.5]


async def test_no_texts_cost_no_request() -> None:
    with FakeCohere() as server:
        assert await reranker(server).rerank("pump", []) == []
    assert server.bodies == []


async def test_results_without_their_documents_count() -> None:
    reply = ranked([0.1, 0.2, 0.9])
    reply["results"][0]["document"] = None
    with FakeCohere(reply) as server:
        assert await reranker(server).rerank("q", TEXTS) == [0.1, 0.2, 0.9]


@pytest.mark.parametrize(
    "first",
    [Failure(429, {"retry-after": "0"}), Failure(500), Failure(503), Failure(0)],
    ids=["too many", "broken", "away", "connection lost"],
)
async def test_a_passing_failure_is_tried_once_more(first: Failure) -> None:
    with FakeCohere(first, by_overlap) as server:
        assert await reranker(server).rerank("pump", TEXTS) == [0.0, 0.0, 1.0]
    assert len(server.bodies) == 2


@pytest.mark.parametrize(
    ("reply", "reason", "requests"),
    [
        (Failure(429), "status 429", 2),
        (Failure(429, {"Retry-After": "30"}), "status 429", 1),
        (Failure(500), "status 500", 2),
        (Failure(401), "status 401", 1),
        (Failure(422), "status 422", 1),
        (Failure(418, body=b"<html>"), "status 418", 1),
        (Failure(0), "disconnected", 2),
        (b"<html>hello</html>", "status 200 and no JSON", 1),
        (b"", "status 200 and no JSON", 1),
        (b"null", "no list of results", 1),
        ([], "must be a mapping", 1),
        ({"id": "x"}, "no list of results", 1),
        ({"results": None}, "no list of results", 1),
        ({"results": "three"}, "no list of results", 1),
        ({"results": []}, "ranked other texts than the 3", 1),
        ({"results": [None, None, None]}, "ranked other texts", 1),
        (ranked([0.1, 0.2]), "ranked other texts", 1),
        (ranked([0.1, 0.2, 0.3, 0.4]), "ranked other texts", 1),
        ({"results": [{"index": at, "relevance_score": 0.5} for at in (0, 1, 1)]}, "ranked other texts", 1),
        ({"results": [{"index": at, "relevance_score": 0.5} for at in (0, 1, -1)]}, "ranked other texts", 1),
        ({"results": [{"index": at, "relevance_score": 0.5} for at in (0, 1, [2])]}, "ranked other texts", 1),
        ({"results": [{"index": at} for at in (0, 1, 2)]}, "no finite number: None", 1),
        (ranked([0.1, 0.2, math.nan]), "no finite number: nan", 1),
        (ranked([0.1, 0.2, "high"]), "no finite number: 'high'", 1),
    ],
    ids=str,
)
async def test_each_bad_answer_leaves_the_fused_order_and_its_reason(reply: Any, reason: str, requests: int) -> None:
    with FakeCohere(reply) as server:
        result = await rerank_candidates(reranker(server), "pump", FUSED, CHUNKS)
    assert list(result.ranking) == FUSED
    assert reason in result.trace["failed"]
    assert "secret" not in str(result.trace)
    assert result.note.startswith("The reranker failed")
    assert len(server.bodies) == requests


async def test_an_answer_that_is_late_is_not_waited_for() -> None:
    with FakeCohere(HANGS) as server:
        asked = reranker(server, seconds=0.2)
        await asyncio.to_thread(asked._load)
        began = time.perf_counter()
        with pytest.raises(KnowledgeBaseError, match=r"no answer within 0\.2 s"):
            await asked.rerank("pump", TEXTS)
    assert time.perf_counter() - began < 10
    assert len(server.bodies) == 1


async def test_the_deadline_counts_both_tries() -> None:
    with FakeCohere(Failure(503), HANGS) as server:
        asked = reranker(server, seconds=0.6)
        await asyncio.to_thread(asked._load)
        began = time.perf_counter()
        result = await rerank_candidates(asked, "pump", FUSED, CHUNKS)
    assert time.perf_counter() - began < 10
    assert (list(result.ranking), result.trace["failed"]) == (FUSED, "no answer within 0.6 s")
    assert len(server.bodies) == 2


async def test_a_cancelled_search_ends_at_once_and_is_no_failure_of_the_server() -> None:
    arrived, loop = asyncio.Event(), asyncio.get_running_loop()

    def hang(body: dict[str, Any]) -> object:
        loop.call_soon_threadsafe(arrived.set)
        return HANGS

    with FakeCohere(hang, by_overlap) as server:
        asked = reranker(server, breaker=CircuitBreaker(failures=1))
        searching = asyncio.create_task(rerank_candidates(asked, "pump", FUSED, CHUNKS))
        await arrived.wait()
        searching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await searching
        assert await asked.rerank("pump", TEXTS) == [0.0, 0.0, 1.0]


async def test_searches_at_once_each_get_their_own_answer() -> None:
    with FakeCohere() as server:
        asked = reranker(server)
        answers = await asyncio.gather(*[asked.rerank(word, TEXTS) for word in ("rain", "gate", "pump")] * 5)
    assert answers == [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]] * 5


def test_one_reranker_serves_several_event_loops() -> None:
    with FakeCohere() as server:
        asked = reranker(server)
        answers = [asyncio.run(asked.rerank("pump", TEXTS)) for _ in range(3)]
    assert answers == [[0.0, 0.0, 1.0]] * 3


async def test_a_server_that_keeps_failing_rests_and_is_tried_again_once() -> None:
    clock = Clock()
    breaker = CircuitBreaker(failures=2, rest_seconds=30, clock=clock)
    with FakeCohere(Failure(401), Failure(401), Failure(401), by_overlap) as server:
        asked = reranker(server, breaker=breaker)
        for _ in range(4):
            with pytest.raises(KnowledgeBaseError):
                await asked.rerank("pump", TEXTS)
        assert len(server.bodies) == 2
        clock.now += 31
        with pytest.raises(KnowledgeBaseError, match="401"):
            await asked.rerank("pump", TEXTS)
        with pytest.raises(KnowledgeBaseError, match="not asked for another 30 s after 3 failures in a row"):
            await asked.rerank("pump", TEXTS)
        clock.now += 31
        for _ in range(2):
            assert await asked.rerank("pump", TEXTS) == [0.0, 0.0, 1.0]
    assert len(server.bodies) == 5


def test_only_one_call_tries_a_server_that_rested() -> None:
    clock = Clock()
    breaker = CircuitBreaker(failures=1, rest_seconds=30, clock=clock)
    with pytest.raises(ConnectionError), breaker.watch():
        raise ConnectionError
    clock.now += 31
    with breaker.watch(), pytest.raises(KnowledgeBaseError, match="not asked"), breaker.watch():
        pytest.fail("must not be called")
    with breaker.watch():
        pass


def test_names_and_objects_become_rerankers(monkeypatch: pytest.MonkeyPatch) -> None:
    given = Scripted(_raises)
    assert (resolve_reranker(None), resolve_reranker("none"), resolve_reranker(given)) == (None, None, given)
    monkeypatch.setenv("CO_API_URL", "http://127.0.0.1:9")
    assert resolve_reranker("cohere", model="m").name == "cohere/m"  # type: ignore[union-attr]


def test_what_cannot_rerank_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SettingsError, match="CO_API_KEY"):
        resolve_reranker("cohere")
    with pytest.raises(SettingsError, match="'flash'"):
        resolve_reranker("flash")
    monkeypatch.setenv("CO_API_URL", "localhost:9")
    with pytest.raises(SettingsError, match="'localhost:9'"):
        resolve_reranker("cohere")
