"""A knowledge base on a Qdrant server that fails in every way a server can, over real HTTP on loopback."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path

import pytest

from graphrag_agent import KnowledgeBase, RagAgent
from graphrag_agent.errors import EmbedderMismatchError, KnowledgeBaseError, SettingsError
from graphrag_agent.knowledge_opening import open_knowledge_base
from graphrag_agent.retrieval.scope import Scope
from graphrag_agent.retrieval.search.circuit_breaker import CircuitBreaker
from graphrag_agent.retrieval.stores.port import StoreProfile
from graphrag_agent.retrieval.stores.server import ServerStore
from graphrag_agent.retrieval.stores.server_address import QdrantServer, is_server, parse_address
from graphrag_agent.retrieval.stores.server_calls import ServerCalls
from graphrag_agent.settings import load_settings
from tests.hashing_embeddings import HashingEmbeddings
from tests.loopback import Reply
from tests.qdrant_shim import QdrantShim

TEXT = "# Pump\n\nThe pump E-1042 needs oil every month.\n"
PASSAGE = TEXT.strip()
OVERLOADED = {"status": {"error": "too many requests"}}


@pytest.fixture
def shim(tmp_path: Path) -> Iterator[QdrantShim]:
    with QdrantShim(tmp_path / "server") as running:
        yield running
    assert running.invalid == []


@pytest.fixture
def knowledge(shim: QdrantShim, tmp_path: Path) -> Iterator[KnowledgeBase]:
    (tmp_path / "pump.md").write_text(TEXT)
    server = QdrantServer(shim.base_url, timeout_seconds=2)
    with KnowledgeBase.open(server, embedder=HashingEmbeddings()) as opened:
        opened.ingest(tmp_path / "pump.md")
        yield opened


def texts(knowledge: KnowledgeBase) -> list[str]:
    return [hit.chunk.text for hit in knowledge.search("pump oil").hits]


@pytest.mark.parametrize(
    ("reply", "times", "least_seconds"),
    [
        (Reply(429, OVERLOADED, {"retry-after": "1"}), 1, 0.9),
        (Reply(429, OVERLOADED), 2, 0.0),
        (Reply(429, OVERLOADED, {"retry-after": formatdate(time.time() - 60, usegmt=True)}), 1, 0.0),
        (Reply(500, b"oops"), 2, 0.0),
        (Reply(503, OVERLOADED, {"retry-after": "1"}), 1, 0.9),
        (Reply(0), 2, 0.0),
        (Reply(200, is_cut=True), 2, 0.0),
    ],
    ids=["429 with a wait", "429", "429 with a date", "500", "503 with a wait", "closed connection", "cut reply"],
)
def test_a_passing_failure_costs_time_only(
    knowledge: KnowledgeBase, shim: QdrantShim, reply: Reply, times: int, least_seconds: float
) -> None:
    fault = shim.fail(reply, path="points/query", times=times)
    started = time.monotonic()
    result = knowledge.search("pump oil", legs=["bm25"])
    assert [hit.chunk.text for hit in result.hits] == [PASSAGE]
    assert (fault.hits, result.note) == (times, "")
    assert time.monotonic() - started >= least_seconds


def test_a_write_is_repeated_and_nothing_is_twice(knowledge: KnowledgeBase, shim: QdrantShim, tmp_path: Path) -> None:
    (tmp_path / "new.md").write_text("Valves are blue.")
    faults = [
        shim.fail(Reply(200, is_cut=True), path=f"PUT /collections/graphrag_{name}/points", times=2)
        for name in ("chunks", "documents")
    ]
    assert knowledge.ingest(tmp_path / "new.md").failed == ()
    assert [fault.hits for fault in faults] == [2, 2]
    assert len(knowledge.documents()) == 2
    assert knowledge.stats().documents == 2


def test_a_wait_longer_than_the_deadline_is_not_waited_for(knowledge: KnowledgeBase, shim: QdrantShim) -> None:
    shim.fail(Reply(429, OVERLOADED, {"retry-after": "60"}))
    started = time.monotonic()
    with pytest.raises(
        KnowledgeBaseError, match=r"127.0.0.1:\d+ does not answer \(status 429, to be asked again in 60 s\): start"
    ):
        knowledge.documents()
    assert time.monotonic() - started < 1


def test_a_silent_server_is_given_up_at_the_deadline(knowledge: KnowledgeBase, shim: QdrantShim) -> None:
    shim.fail(Reply(200, seconds=30), path="points/scroll")
    started = time.monotonic()
    with pytest.raises(KnowledgeBaseError, match="no reply within"):
        knowledge.documents()
    assert 1 <= time.monotonic() - started < 20


def test_a_slow_server_is_waited_for(knowledge: KnowledgeBase, shim: QdrantShim) -> None:
    shim.fail(Reply(200, seconds=0.4), path="points/query")
    assert texts(knowledge)


def test_one_leg_down_is_an_answer_with_a_note(knowledge: KnowledgeBase, shim: QdrantShim) -> None:
    dense = next(iter(shim.collections["graphrag_chunks"].vectors))
    answer = shim.answer

    for down in (dense, "bm25"):
        shim.answer = lambda request, down=down: (  # type: ignore[method-assign]
            Reply(500, b"down") if f'"using":"{down}"'.encode() in request.body else answer(request)
        )
        result = knowledge.search("pump oil")
        assert [hit.chunk.text for hit in result.hits] == [PASSAGE]
        assert "failed" in result.note
        assert knowledge.documents()


def test_one_collection_down_leaves_the_other(knowledge: KnowledgeBase, shim: QdrantShim) -> None:
    shim.fail(Reply(500, b"down"), path="graphrag_documents")
    assert texts(knowledge)
    with pytest.raises(KnowledgeBaseError, match="status 500"):
        knowledge.documents()


def test_all_down_is_one_clear_error_and_soon_no_more_waiting(knowledge: KnowledgeBase, shim: QdrantShim) -> None:
    shim.fail(Reply(500, b"down"))
    for _ in range(4):
        with pytest.raises(KnowledgeBaseError) as failure:
            knowledge.documents()
    assert "not asked for another" in str(failure.value)
    assert shim.base_url in str(failure.value)
    asked = len(shim.requests)
    with pytest.raises(KnowledgeBaseError):
        knowledge.documents()
    assert len(shim.requests) == asked


def test_a_turn_ends_in_an_answer_though_the_server_is_gone(knowledge: KnowledgeBase, shim: QdrantShim) -> None:
    shim.fail(Reply(0))
    answer = RagAgent(model="offline", knowledge=knowledge).ask("How often does the pump need oil?")
    assert answer.text
    assert answer.citations == ()


def test_a_refusal_is_not_repeated_and_says_why(knowledge: KnowledgeBase, shim: QdrantShim) -> None:
    fault = shim.fail(Reply(400, {"status": {"error": "Wrong input: too long"}}))
    with pytest.raises(KnowledgeBaseError, match="refused with status 400: Wrong input: too long"):
        knowledge.documents()
    assert fault.hits == 1


def test_a_server_that_was_never_there_is_named(unused_tcp_port: int) -> None:
    named = pytest.raises(KnowledgeBaseError, match=rf"127.0.0.1:{unused_tcp_port} does not answer \(Connect")
    with KnowledgeBase.open(f"http://127.0.0.1:{unused_tcp_port}", embedder=None) as knowledge, named:
        knowledge.search("pump")


@pytest.mark.parametrize(("version", "fits"), [("1.18.3", False), ("1.19.0", True), ("2.0.0-dev", True), ("x", False)])
def test_a_server_that_would_count_other_tenants_words_is_refused(tmp_path: Path, version: str, fits: bool) -> None:
    with QdrantShim(tmp_path, version=version) as shim, KnowledgeBase.open(shim.base_url, embedder=None) as knowledge:
        if fits:
            assert knowledge.documents() == []
        else:
            with pytest.raises(KnowledgeBaseError, match=r"must be 1\.19 or newer"):
                knowledge.documents()


def test_something_else_behind_the_url_is_told_apart(shim: QdrantShim) -> None:
    shim.fail(Reply(200, b"<html>hello</html>"))
    named = pytest.raises(KnowledgeBaseError, match="not as Qdrant does")
    with KnowledgeBase.open(shim.base_url, embedder=None) as knowledge, named:
        knowledge.documents()


def test_the_key_is_sent_and_a_wrong_one_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with QdrantShim(tmp_path, key="right") as shim:
        named = pytest.raises(KnowledgeBaseError, match="set QDRANT_API_KEY")
        with KnowledgeBase.open(shim.base_url, embedder=None) as knowledge, named:
            knowledge.documents()
        monkeypatch.setenv("QDRANT_API_KEY", "right")
        with KnowledgeBase.open(shim.base_url, embedder=None) as knowledge:
            assert knowledge.documents() == []


def test_a_password_is_sent_and_never_shown(shim: QdrantShim) -> None:
    url = shim.base_url.replace("http://", "http://reader:s3cret%21@")
    server = QdrantServer(url)
    assert "s3cret" not in repr(server) + repr(parse_address(server))
    shim.fail(Reply(400, {"status": {"error": "no"}}), path="scroll")
    with KnowledgeBase.open(url, embedder=None) as knowledge, pytest.raises(KnowledgeBaseError) as failure:
        knowledge.documents()
    assert "s3cret" not in str(failure.value)
    assert {request.headers["authorization"] for request in shim.requests} == {"Basic cmVhZGVyOnMzY3JldCE="}


@pytest.mark.parametrize(
    "url",
    ["http://", "http://u:s3cret@", "http://u:s3cret@host:port", "http://u:s3cret@[::1", "http://u:s3cret@h/?a=1"],
)
def test_a_bad_url_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(SettingsError) as failure:
        KnowledgeBase.open(url, embedder=None)
    assert "s3cret" not in str(failure.value)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://127.0.0.1", "http://127.0.0.1:6333"),
        ("https://u:p@qdrant.example:443/store/", "https://qdrant.example:443/store"),
        ("HTTP://[::1]", "http://[::1]:6333"),
    ],
)
def test_addresses(url: str, shown: str) -> None:
    assert is_server(url)
    assert parse_address(QdrantServer(url)).url == shown


def test_a_key_over_an_open_line_is_warned_of() -> None:
    with pytest.warns(UserWarning, match="travels unencrypted"):
        QdrantServer("http://qdrant.example", api_key="secret")


@pytest.mark.parametrize("bad", [{"prefix": "a/b"}, {"shards": 0}, {"timeout_seconds": 0}, {"write_consistency": 2}])
def test_options_that_cannot_be_are_refused(bad: dict[str, object]) -> None:
    with pytest.raises(SettingsError):
        QdrantServer("http://127.0.0.1", **bad)  # type: ignore[arg-type]


def test_settings_reach_the_server(shim: QdrantShim, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"kb": shim.base_url, "embedder": "none", "qdrant_prefix": "mine", "qdrant_shards": "3"}
    given |= {"qdrant_replicas": "2", "qdrant_write_consistency": "2", "qdrant_write_ordering": "strong"}
    for name, value in given.items():
        monkeypatch.setenv(f"GRAPHRAG_{name.upper()}", value)
    (tmp_path / "pump.md").write_text(TEXT)
    with open_knowledge_base(load_settings()) as knowledge:
        assert knowledge.ingest(tmp_path / "pump.md").documents == 1
        assert texts(knowledge)
    for name in ("mine_chunks", "mine_documents"):
        made = shim.collections[name].made
        assert (made.shard_number, made.replication_factor, made.write_consistency_factor) == (3, 2, 2)
        assert shim.collections[name].indexes["tenant"].is_tenant
    assert {"ordering=strong" in request.path for request in shim.asked("PUT /collections/mine_chunks/points")} == {
        True
    }


def test_one_knowledge_base_serves_sync_code_and_several_loops(knowledge: KnowledgeBase) -> None:
    async def ask() -> list[str]:
        found = await asyncio.gather(*(knowledge.asearch("pump oil") for _ in range(5)))
        return [result.hits[0].chunk.text for result in found]

    expected = texts(knowledge)
    assert asyncio.run(ask()) == asyncio.run(ask()) == expected * 5
    assert texts(knowledge) == expected


async def test_a_cancelled_read_ends_its_request(knowledge: KnowledgeBase, shim: QdrantShim) -> None:
    shim.fail(Reply(200, seconds=1), path="points/scroll", times=1)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await knowledge.adocuments()
    assert len(await knowledge.adocuments()) == 1


def test_a_request_that_its_client_left_in_the_middle_is_none(shim: QdrantShim) -> None:
    """Of the shim itself: a read that is cancelled must not look like one that the client's models refuse."""
    host, _, port = shim.base_url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=10) as client:
        client.sendall(b'POST /collections/a/points/scroll HTTP/1.1\r\nContent-Length: 90\r\n\r\n{"limit')
        client.shutdown(socket.SHUT_WR)
        assert client.recv(1) == b""
    assert (shim.requests, shim.invalid) == ([], [])


async def test_two_processes_may_make_the_collections_at_once(shim: QdrantShim) -> None:
    stores = [ServerStore(QdrantServer(shim.base_url)) for _ in range(3)]
    profiles = [StoreProfile(f"embedder-{number}", 3) for number in range(3)]
    done = await asyncio.gather(
        *(store.write_profile(profile) for store, profile in zip(stores, profiles, strict=True)), return_exceptions=True
    )
    assert sorted(type(result).__name__ for result in done) == ["EmbedderMismatchError"] * 2 + ["NoneType"]
    winner = profiles[done.index(None)]
    assert [await store.profile() for store in stores] == [winner] * 3
    for store in stores:
        await store.aclose()


async def test_vectors_of_an_embedder_that_was_replaced_elsewhere_are_neither_found_nor_added(shim: QdrantShim) -> None:
    slow, fast = (ServerStore(QdrantServer(shim.base_url)) for _ in range(2))
    await slow.write_profile(StoreProfile("old", 3))
    await fast.drop_vectors()
    await fast.write_profile(StoreProfile("new", 3))
    assert await slow.search_dense([1.0, 0.0, 0.0], Scope("acme"), 5) == []
    with pytest.raises(EmbedderMismatchError):
        await slow.write_vectors({"c1": [1.0, 0.0, 0.0]}, "old")
    for store in (slow, fast):
        await store.aclose()


async def test_an_empty_scope_asks_nothing(shim: QdrantShim) -> None:
    store = ServerStore(QdrantServer(shim.base_url))
    nothing = Scope("acme").narrowed(collections=[])
    assert await store.search_dense([1.0], nothing, 5) == await store.search_bm25({"a": 1}, nothing, 5) == []
    assert await store.documents(nothing) == await store.chunks("d", nothing) == []
    assert await store.document("d", nothing) is None
    assert (await store.counts(nothing)).chunks == 0
    assert shim.requests == []
    await store.aclose()


async def test_a_closed_store_says_so(shim: QdrantShim) -> None:
    store = ServerStore(QdrantServer(shim.base_url))
    await store.aclose()
    await store.aclose()
    with pytest.raises(KnowledgeBaseError, match="closed: open it again"):
        await store.documents(Scope("acme"))


async def test_after_its_rest_the_server_is_asked_again(shim: QdrantShim) -> None:
    clock = iter([0.0] * 3 + [1.0] + [100.0] * 9)
    server = QdrantServer(shim.base_url, timeout_seconds=5)
    calls = ServerCalls(server, breaker=CircuitBreaker(failures=1, clock=lambda: next(clock)))
    store = ServerStore(server, calls=calls)
    shim.fail(Reply(500, b"down"))
    with pytest.raises(KnowledgeBaseError, match="status 500"):
        await store.documents(Scope("acme"))
    shim.heal()
    results = []
    for _ in range(6):
        try:
            results.append(await store.documents(Scope("acme")))
        except KnowledgeBaseError:
            results.append(None)
    assert results[-1] == []
    await store.aclose()
