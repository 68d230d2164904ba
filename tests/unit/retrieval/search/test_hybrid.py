from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import pytest
import pytest_asyncio

from graphrag_agent.documents import Chunk, LegScore
from graphrag_agent.errors import SettingsError
from graphrag_agent.retrieval.embedders import LangChainEmbedder
from graphrag_agent.retrieval.scope import Scope
from graphrag_agent.retrieval.search.hybrid import MAX_QUERY_CHARACTERS, search
from graphrag_agent.retrieval.search.rerank import CohereReranker
from graphrag_agent.retrieval.stores.memory import MemoryStore
from graphrag_agent.retrieval.stores.port import ChunkRecord, StoreProfile
from graphrag_agent.retrieval.tokenizer import count_terms
from tests.fake_cohere import Failure, FakeCohere
from tests.hashing_embeddings import DIMENSIONS, HashingEmbeddings

SCOPE = Scope("acme")
TEXTS = {"pump": "the pump hums loudly", "gate": "the gate is shut", "roof": "rain on the roof"}


class FailingEmbeddings(HashingEmbeddings):
    def embed_query(self, text: str) -> list[float]:
        raise ConnectionError("no route")


@pytest.fixture
def embedder() -> LangChainEmbedder:
    return LangChainEmbedder(HashingEmbeddings())


@pytest_asyncio.fixture
async def store(embedder: LangChainEmbedder) -> AsyncIterator[MemoryStore]:
    filled = MemoryStore()
    await filled.write_profile(StoreProfile(embedder.identity, DIMENSIONS))
    vectors = await embedder.embed_passages(list(TEXTS.values()))
    for (name, text), vector in zip(TEXTS.items(), vectors, strict=True):
        chunk = Chunk(name, "d", "acme", "c", (), f"{name}.md", "md", "", "", None, 0, text, 0, len(text))
        await filled.write_chunks([ChunkRecord(chunk, count_terms(text), vector)])
    yield filled
    await filled.aclose()


async def test_a_hit_says_where_each_leg_ranked_it(store: MemoryStore, embedder: LangChainEmbedder) -> None:
    result = await search(store, embedder, "  pump hums ", SCOPE, 2)
    first = result.hits[0]
    assert (first.chunk.id, first.legs["bm25"].rank, first.legs["dense"].rank) == ("pump", 1, 1)
    assert result.trace["legs"]["bm25"]["candidates"] == 1
    assert result.trace["fusion"] == "dbsf"
    assert result.note == ""


async def test_legs_can_be_chosen(store: MemoryStore, embedder: LangChainEmbedder) -> None:
    words_only = await search(store, embedder, "the pump", SCOPE, 9, ["bm25"])
    assert [set(hit.legs) for hit in words_only.hits] == [{"bm25"}] * 3
    assert list(words_only.trace["legs"]) == ["bm25"]


async def test_without_an_embedder_words_decide_and_the_trace_says_so(store: MemoryStore) -> None:
    result = await search(store, None, "gate", SCOPE, 5)
    assert [hit.chunk.id for hit in result.hits] == ["gate"]
    assert result.trace["legs"]["dense"] == {"skipped": "no embedder"}


async def test_an_embedder_that_fails_costs_its_leg_only(store: MemoryStore) -> None:
    result = await search(store, LangChainEmbedder(FailingEmbeddings()), "gate", SCOPE, 5)
    assert [hit.chunk.id for hit in result.hits] == ["gate"]
    assert result.note == "The dense leg failed and was left out."
    assert result.trace["legs"]["dense"] == {"failed": "ConnectionError: no route"}
    with pytest.raises(ConnectionError):
        await search(store, LangChainEmbedder(FailingEmbeddings()), "gate", SCOPE, 5, ["dense"])


@pytest.mark.parametrize(
    ("query", "scope", "note"),
    [
        (" \n", SCOPE, "The query is empty"),
        ("zebra", SCOPE, "Nothing matched: try other words"),
        ("pump", Scope("other"), "has no documents in this scope"),
    ],
    ids=["blank", "no match", "nothing there"],
)
async def test_no_hits_come_with_advice(store: MemoryStore, query: str, scope: Scope, note: str) -> None:
    result = await search(store, None, query, scope, 5)
    assert result.hits == ()
    assert note in result.note


async def test_a_very_long_query_is_cut_and_says_so(store: MemoryStore) -> None:
    result = await search(store, None, "gate " * MAX_QUERY_CHARACTERS, SCOPE, 5)
    assert [hit.chunk.id for hit in result.hits] == ["gate"]
    assert result.note == "The query was cut to its first 2000 characters."


async def test_as_many_hits_come_as_were_asked_for(store: MemoryStore) -> None:
    for number in range(120):
        text = f"ledger entry {number} about subject {number * 7919}"
        chunk = Chunk(f"n{number}", "d3", "acme", "c", (), "n.md", "md", "", "", None, number, text, 0, len(text))
        await store.write_chunks([ChunkRecord(chunk, count_terms(text), None)])
    assert len((await search(store, None, "ledger", SCOPE, 100)).hits) == 100


@pytest.mark.parametrize(("top_k", "legs"), [(0, None), (5, ["graph"]), (5, [])])
async def test_bad_options_are_refused(store: MemoryStore, top_k: int, legs: list[str] | None) -> None:
    with pytest.raises(SettingsError, match=r"top_k=0|legs="):
        await search(store, None, "gate", SCOPE, top_k, legs)


async def test_copies_make_room_for_the_next_hits_and_the_trace_names_them(store: MemoryStore) -> None:
    for name in ("copy", "twin"):
        text = f" {TEXTS['pump'].upper()}"
        chunk = Chunk(name, "d2", "acme", "c", (), f"{name}.md", "md", "", "", None, 0, text, 0, len(text))
        await store.write_chunks([ChunkRecord(chunk, count_terms(text), None)])
    result = await search(store, None, "the pump hums loudly", SCOPE, 2)
    assert len({hit.chunk.text.strip().lower() for hit in result.hits}) == 2
    dropped = [item for item in result.trace["dropped"] if item["why"] == "duplicate"]
    assert len(dropped) == 2
    assert {item["duplicate_of"] for item in dropped} == {result.hits[0].chunk.id}
    assert {item["chunk"] for item in dropped} | {result.hits[0].chunk.id} == {"pump", "copy", "twin"}
    assert all(item["source"] == f"{item['chunk']}.md" for item in dropped)


class Backwards:
    name = "backwards"

    def __init__(self) -> None:
        self.texts: list[str] = []

    async def rerank(self, query: str, texts: Sequence[str]) -> list[float]:
        self.texts += texts
        return [place / 10 for place, _ in enumerate(texts)]


async def test_a_reranker_decides_the_order_and_each_hit_says_so(store: MemoryStore) -> None:
    result = await search(store, None, "the pump", SCOPE, 2, reranker=Backwards())
    assert [hit.legs["rerank"] for hit in result.hits] == [LegScore(1, 0.2), LegScore(2, 0.1)]
    assert [hit.score for hit in result.hits] == [0.2, 0.1]
    assert [hit.legs["bm25"].rank for hit in result.hits] == [3, 2]
    assert (result.trace["rerank"]["name"], result.trace["rerank"]["candidates"], result.note) == ("backwards", 3, "")


async def test_the_reranker_sees_only_what_the_scope_holds(store: MemoryStore) -> None:
    text = "the pump of a rival hums"
    chunk = Chunk("theirs", "d9", "rival", "c", (), "r.md", "md", "", "", None, 0, text, 0, len(text))
    await store.write_chunks([ChunkRecord(chunk, count_terms(text), None)])
    seen = Backwards()
    await search(store, None, "the pump hums", SCOPE, 9, reranker=seen)
    assert sorted(seen.texts) == sorted(TEXTS.values())


@pytest.mark.parametrize(("query", "scope"), [("zebra", SCOPE), (" ", SCOPE), ("pump", Scope("other"))])
async def test_no_hits_are_not_reranked(store: MemoryStore, query: str, scope: Scope) -> None:
    with FakeCohere() as server:
        reranker = CohereReranker(api_key="k", base_url=server.base_url)
        assert (await search(store, None, query, scope, 5, reranker=reranker)).hits == ()
    assert server.bodies == []


async def test_a_failed_rerank_is_noted_and_costs_no_hit(store: MemoryStore) -> None:
    plain = await search(store, None, "the pump", SCOPE, 5)
    with FakeCohere(Failure(422)) as server:
        reranker = CohereReranker(api_key="k", base_url=server.base_url)
        result = await search(store, None, "the pump", SCOPE, 5, reranker=reranker)
    assert result.hits == plain.hits
    assert result.note == "The reranker failed, so the passages are in the order of the search itself."
    assert result.trace["rerank"]["failed"] == "the server answered with status 422"
    assert plain.trace["rerank"] == {"skipped": "no reranker"}
