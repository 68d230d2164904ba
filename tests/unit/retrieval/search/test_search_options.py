"""What a search does when it is asked for another fusion, more queries or more variety."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence

import pytest
import pytest_asyncio

from graphrag_agent.documents import Chunk
from graphrag_agent.retrieval.embedders import LangChainEmbedder
from graphrag_agent.retrieval.scope import Scope
from graphrag_agent.retrieval.search.fusion import FUSIONS
from graphrag_agent.retrieval.search.hybrid import search
from graphrag_agent.retrieval.search.options import SearchOptions
from graphrag_agent.retrieval.search.strategies import Strategy
from graphrag_agent.retrieval.search.trace import COMPACT_BYTES, compact_trace
from graphrag_agent.retrieval.stores.memory import MemoryStore
from graphrag_agent.retrieval.stores.port import ChunkRecord, LegHit, QueryTerms, StoreProfile, Vector
from graphrag_agent.retrieval.tokenizer import count_terms
from tests.hashing_embeddings import DIMENSIONS, HashingEmbeddings

SCOPE = Scope("acme")
TEXTS = {
    "pump": "the pump hums loudly",
    "gate": "the gate is shut",
    "roof": "rain on the roof",
    "code": "error E-1042 means a leak",
    "codes": "e 1042 e 1042 e 1042 is a number of steps and of stairs",
}


class Writes:
    def __init__(self, *written: str) -> None:
        self.written = list(written)

    async def write(self, query: str, kind: str) -> Sequence[str]:
        return self.written


class CountedStore(MemoryStore):
    """Counts its searches; `broken` legs fail."""

    def __init__(self) -> None:
        super().__init__()
        self.searches: list[str] = []
        self.reads = 0
        self.broken: set[str] = set()

    async def search_bm25(self, terms: QueryTerms, scope: Scope, limit: int) -> list[LegHit]:
        self.searches.append("bm25")
        if "bm25" in self.broken:
            raise ConnectionError("no route")
        return await super().search_bm25(terms, scope, limit)

    async def search_dense(self, vector: Vector, scope: Scope, limit: int) -> list[LegHit]:
        self.searches.append("dense")
        if "dense" in self.broken:
            raise ConnectionError("no route")
        return await super().search_dense(vector, scope, limit)

    async def vectors(self, chunk_ids: Sequence[str]) -> dict[str, Vector]:
        self.reads += 1
        return await super().vectors(chunk_ids)


@pytest.fixture
def embedder() -> LangChainEmbedder:
    return LangChainEmbedder(HashingEmbeddings())


@pytest_asyncio.fixture
async def store(embedder: LangChainEmbedder) -> AsyncIterator[CountedStore]:
    filled = CountedStore()
    await filled.write_profile(StoreProfile(embedder.identity, DIMENSIONS))
    for (name, text), vector in zip(TEXTS.items(), await embedder.embed_passages(list(TEXTS.values())), strict=True):
        chunk = Chunk(name, "d", "acme", "c", (), f"{name}.md", "md", "", "", None, 0, text, 0, len(text))
        await filled.write_chunks([ChunkRecord(chunk, count_terms(text), vector)])
    yield filled
    await filled.aclose()


@pytest.mark.parametrize("fusion", FUSIONS)
async def test_the_fusion_that_is_asked_for_makes_the_scores(
    store: CountedStore, embedder: LangChainEmbedder, fusion: str
) -> None:
    result = await search(store, embedder, "the pump", SCOPE, 5, options=SearchOptions(fusion))
    legs: dict[str, list[tuple[str, float]]] = {"bm25": [], "dense": []}
    for hit in result.hits:
        for leg, at in hit.legs.items():
            legs[leg].append((hit.chunk.id, at.score))
    assert [(hit.chunk.id, pytest.approx(hit.score)) for hit in result.hits] == FUSIONS[fusion](legs)
    assert result.trace["fusion"] == fusion


async def test_the_usual_search_asks_each_leg_once_and_reads_nothing_else(
    store: CountedStore, embedder: LangChainEmbedder
) -> None:
    result = await search(store, embedder, "the pump", SCOPE, 2)
    assert (sorted(store.searches), store.reads) == (["bm25", "dense"], 0)
    assert result.trace["queries"] == ["the pump"]
    assert result.trace["strategy"] == {"name": "direct", "writer": "none"}


async def test_every_query_and_leg_votes_once_and_the_trace_lists_them(
    store: CountedStore, embedder: LangChainEmbedder
) -> None:
    options = SearchOptions(strategy=Strategy("multi_query", Writes("the gate", "rain")))
    result = await search(store, embedder, "the pump", SCOPE, 9, options=options)
    names = ["bm25", "dense", "bm25/2", "dense/2", "bm25/3", "dense/3"]
    assert result.trace["queries"] == ["the pump", "the gate", "rain"]
    assert sorted(result.trace["legs"]) == sorted(names)
    found = {hit.chunk.id: hit for hit in result.hits}
    assert found["roof"].legs["bm25/3"].rank == 1
    assert found["gate"].legs["bm25/2"].rank == 1
    assert result.note == ""


async def test_hyde_searches_its_passage_by_meaning_and_by_words_where_there_are_no_vectors(
    store: CountedStore, embedder: LangChainEmbedder
) -> None:
    options = SearchOptions(strategy=Strategy("hyde", Writes("rain on the roof")))
    result = await search(store, embedder, "wet", SCOPE, 9, options=options)
    assert sorted(result.trace["legs"]) == ["bm25", "dense", "dense/2"]
    assert result.hits[0].chunk.id == "roof"
    words = await search(store, None, "wet", SCOPE, 1, options=options)
    assert (words.hits[0].chunk.id, "bm25/2" in words.trace["legs"]) == ("roof", True)


async def test_extra_queries_are_embedded_in_one_batch_where_the_embedder_can(store: CountedStore) -> None:
    class Batches(LangChainEmbedder):
        batches: list[list[str]] = []  # noqa: RUF012

        async def embed_queries(self, texts: Sequence[str]) -> list[list[float]]:
            self.batches.append(list(texts))
            return [await self.embed_query(text) for text in texts]

    options = SearchOptions(strategy=Strategy("multi_query", Writes("the gate", "rain")))
    await search(store, Batches(HashingEmbeddings()), "the pump", SCOPE, 9, options=options)
    assert Batches.batches == [["the gate", "rain"]]


async def test_a_writer_that_fails_leaves_the_search_as_it_is(store: CountedStore, embedder: LangChainEmbedder) -> None:
    class Fails:
        async def write(self, query: str, kind: str) -> Sequence[str]:
            raise ConnectionError("no route")

    plain = await search(store, embedder, "the pump", SCOPE, 9)
    result = await search(
        store, embedder, "the pump", SCOPE, 9, options=SearchOptions(strategy=Strategy("hyde", Fails()))
    )
    assert result.hits == plain.hits
    assert result.note == "Only the query itself was searched: ConnectionError."
    assert result.trace["strategy"]["failed"] == "ConnectionError"


@pytest.mark.parametrize("broken", ["bm25", "dense"])
async def test_one_leg_that_fails_costs_its_list_only(
    store: CountedStore, embedder: LangChainEmbedder, broken: str
) -> None:
    store.broken = {broken}
    result = await search(store, embedder, "the pump", SCOPE, 1)
    assert result.hits[0].chunk.id == "pump"
    assert result.note == f"The {broken} leg failed and was left out."
    store.broken = {"bm25", "dense"}
    with pytest.raises(ConnectionError):
        await search(store, embedder, "the pump", SCOPE, 1)


async def test_a_failed_leg_beside_a_skipped_one_is_no_empty_answer(store: CountedStore) -> None:
    store.broken = {"bm25"}
    with pytest.raises(ConnectionError):
        await search(store, None, "the pump", SCOPE, 1)


class Disagrees(HashingEmbeddings):
    def embed_query(self, text: str) -> list[float]:
        return super().embed_query(TEXTS["codes"])


async def test_one_identifier_finds_its_holder_first_though_vectors_disagree(store: CountedStore) -> None:
    embedder = LangChainEmbedder(Disagrees())
    spread = await search(store, embedder, "the E-1042", SCOPE, 5)
    assert spread.hits[0].chunk.id == "codes"
    options = SearchOptions(strategy=Strategy("multi_query", Writes("the pump")))
    result = await search(store, embedder, "E-1042", SCOPE, 5, options=options)
    assert result.hits[0].chunk.id == "code"
    assert result.trace["exact"] == {"identifier": "e-1042", "holders": 1}
    assert result.trace["queries"] == ["E-1042"]
    assert result.trace["strategy"]["skipped"] == "the query is one identifier"
    dense = await search(store, embedder, "1042", SCOPE, 5, ["dense"])
    assert dense.hits[0].chunk.id == "codes"


async def test_variety_lets_the_like_of_a_better_hit_give_way(store: CountedStore, embedder: LangChainEmbedder) -> None:
    text = "the pump hums loudly now"
    chunk = Chunk("again", "d", "acme", "c", (), "again.md", "md", "", "", None, 1, text, 0, len(text))
    await store.write_chunks([ChunkRecord(chunk, count_terms(text), (await embedder.embed_passages([text]))[0])])
    query = "the pump hums near the gate"
    plain = [hit.chunk.id for hit in (await search(store, embedder, query, SCOPE, 3)).hits]
    result = await search(store, embedder, query, SCOPE, 3, options=SearchOptions(diversity=True))
    varied = [hit.chunk.id for hit in result.hits]
    assert (sorted(plain), sorted(varied)) == (["again", "gate", "pump"], ["again", "gate", "pump"])
    assert (plain.index("gate"), varied.index("gate")) == (2, 1)
    assert store.reads == 1


async def test_dropped_candidates_are_named_with_the_reason(store: CountedStore, embedder: LangChainEmbedder) -> None:
    result = await search(store, embedder, "the pump", SCOPE, 1)
    whys = {item["chunk"]: item["why"] for item in result.trace["dropped"]}
    assert set(whys.values()) == {"below top_k"}
    assert {"gate", "roof"} <= set(whys)
    assert result.hits[0].chunk.id not in whys
    assert [item["rank"] for item in result.trace["dropped"]] == list(range(2, len(whys) + 2))


async def test_the_compact_trace_is_a_kilobyte_without_texts(store: CountedStore, embedder: LangChainEmbedder) -> None:
    for number in range(30):
        text = f"the pump number {number} hums <b>secret</b>"
        chunk = Chunk(f"p{number}", "d", "acme", "c", (), "secret.md", "md", "", "", None, number, text, 0, len(text))
        await store.write_chunks([ChunkRecord(chunk, count_terms(text), None)])
    options = SearchOptions(strategy=Strategy("multi_query", Writes(*(f"the pump {'é' * 200}{n}" for n in range(9)))))
    compact = compact_trace(await search(store, embedder, "the pump", SCOPE, 20, options=options))
    told = json.dumps(compact, ensure_ascii=False)
    assert len(told.encode()) <= 1.3 * COMPACT_BYTES
    assert "secret" not in told
    assert compact["dropped"]["below top_k"] > 0
    assert (compact["strategy"], compact["fusion"], compact["rerank"]) == ("multi_query", "dbsf", "no reranker")


async def test_a_notebook_shows_hostile_text_as_text(store: CountedStore) -> None:
    text = "pump <script>alert(1)</script> & more"
    chunk = Chunk("x", "d", "acme", "c", (), "<img src=x>.md", "md", "", "", 3, 0, text, 0, len(text))
    await store.write_chunks([ChunkRecord(chunk, count_terms(text), None)])
    shown = (await search(store, None, "<b>script</b>", SCOPE, 5))._repr_html_()
    assert "<script" not in shown
    assert "<img" not in shown
    assert "<b>script" not in shown
    assert "&lt;script&gt;alert(1)" in shown
    assert "&lt;img src=x&gt;.md, page 3" in shown
    assert "fusion: dbsf" in shown


class ForgetfulStore(CountedStore):
    async def profile(self) -> StoreProfile | None:
        raise ConnectionError("no route")


async def test_a_store_that_cannot_tell_its_profile_costs_the_dense_lists_only() -> None:
    store = ForgetfulStore()
    chunk = Chunk("1", "d", "acme", "c", (), "s", "md", "T", "", None, 0, TEXTS["pump"], 0, 20)
    await store.write_chunks([ChunkRecord(chunk, count_terms(chunk.text), None)])
    options = SearchOptions(strategy=Strategy("multi_query", Writes("loud pump")))
    embedder = LangChainEmbedder(HashingEmbeddings())
    result = await search(store, embedder, "the pump", SCOPE, 3, options=options)
    assert [hit.chunk.id for hit in result.hits] == ["1"]
    assert "The dense leg failed" in result.note


async def test_an_embedder_that_gives_too_few_vectors_costs_the_extra_dense_lists_only() -> None:
    class Short(LangChainEmbedder):
        async def embed_queries(self, texts: Sequence[str]) -> list[list[float]]:
            return []

    store, embedder = CountedStore(), Short(HashingEmbeddings())
    chunk = Chunk("1", "d", "acme", "c", (), "s", "md", "T", "", None, 0, TEXTS["pump"], 0, 20)
    (vector,) = await embedder.embed_passages([chunk.text])
    await store.write_profile(StoreProfile(embedder.identity, DIMENSIONS))
    await store.write_chunks([ChunkRecord(chunk, count_terms(chunk.text), vector)])
    options = SearchOptions(strategy=Strategy("multi_query", Writes("loud pump")))
    result = await search(store, embedder, "the pump", SCOPE, 3, options=options)
    assert [hit.chunk.id for hit in result.hits] == ["1"]
    assert "The dense/2 leg failed" in result.note
