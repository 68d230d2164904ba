from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import pytest_asyncio

from graphrag_agent.documents import Chunk
from graphrag_agent.retrieval.embedders import LangChainEmbedder
from graphrag_agent.retrieval.ingestion import embedding
from graphrag_agent.retrieval.ingestion.embedding import FillOutcome, VectorFill, fill_vectors
from graphrag_agent.retrieval.scope import Scope
from graphrag_agent.retrieval.stores.memory import MemoryStore
from graphrag_agent.retrieval.stores.port import ChunkRecord, StoreProfile
from graphrag_agent.retrieval.tokenizer import count_terms
from tests.hashing_embeddings import DIMENSIONS, HashingEmbeddings

PLAIN = Chunk("", "doc", "acme", "default", (), "a.md", "md", "A", "", None, 0, "", 0, 0)


class Embedder(LangChainEmbedder):
    """Counts its batches; fails for texts with a word of `poison`, or for all while `broken`."""

    def __init__(self, model: str = "hashing") -> None:
        self.texts = HashingEmbeddings(model)
        self.poison: set[str] = set()
        self.broken: Exception | None = None
        self.batches: list[int] = []
        super().__init__(self.texts)

    async def embed_passages(self, texts) -> list[list[float]]:
        self.batches.append(len(texts))
        if self.broken:
            raise self.broken
        if any(self.poison.intersection(text.split()) for text in texts):
            raise ValueError(f"can't embed {texts}")
        return await super().embed_passages(texts)


@pytest.fixture(autouse=True)
def no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding, "_RETRY_SECONDS", (0.0, 0.0))


@pytest_asyncio.fixture
async def store() -> AsyncIterator[MemoryStore]:
    made = MemoryStore()
    yield made
    await made.aclose()


async def put(store: MemoryStore, *texts: str, tenant: str = "acme", prefix: str = "c") -> None:
    chunks = [replace(PLAIN, id=f"{prefix}{at}", tenant=tenant, text=text) for at, text in enumerate(texts)]
    await store.write_chunks([ChunkRecord(chunk, count_terms(chunk.text), None) for chunk in chunks])


async def pending(store: MemoryStore) -> list[str]:
    return sorted(chunk.id for chunk in await store.pending_chunks(9999))


async def test_every_pending_chunk_gets_the_vector_of_its_text_under_its_title(store: MemoryStore) -> None:
    await put(store, *(f"word w{number} " * (number % 7 + 1) for number in range(70)))
    embedder, told = Embedder(), []
    outcome = await fill_vectors(store, embedder, told.append)
    assert (outcome, outcome.problem) == (FillOutcome(embedded=70), None)
    assert (sum(told), await pending(store)) == (70, [])
    assert await store.profile() == StoreProfile(embedder.identity, DIMENSIONS)
    query = await embedder.embed_query("A word w42 " + "word w42 " * (42 % 7))
    assert (await store.search_dense(query, Scope("acme"), 1))[0].chunk.id == "c42"
    assert max(embedder.batches) == embedding.BATCH_CHUNKS


async def test_nothing_pending_asks_the_embedder_for_nothing(store: MemoryStore) -> None:
    embedder = Embedder()
    assert await fill_vectors(store, embedder) == FillOutcome()
    assert embedder.batches == []


async def test_equal_texts_of_a_tenant_are_embedded_once_and_of_two_tenants_twice(store: MemoryStore) -> None:
    await put(store, "same", "same", "other")
    await put(store, "same", tenant="globex", prefix="g")
    embedder = Embedder()
    assert await fill_vectors(store, embedder) == FillOutcome(embedded=3, reused=1)
    await put(store, "same", "new", prefix="d")
    assert await fill_vectors(store, embedder) == FillOutcome(embedded=1, reused=1)
    assert sorted(embedder.texts.passages) == ["A\nnew", "A\nother", "A\nsame", "A\nsame"]
    assert await pending(store) == []


async def test_a_broken_embedder_leaves_all_pending_with_the_reason_and_is_not_pestered(store: MemoryStore) -> None:
    await put(store, *(f"w{number}" for number in range(64)))
    embedder = Embedder()
    embedder.broken = ConnectionError("no route")
    outcome = await fill_vectors(store, embedder)
    assert outcome == FillOutcome(error="ConnectionError: no route")
    assert (len(await pending(store)), await store.profile()) == (64, None)
    assert embedder.batches == [32, 32, 32, 1]
    embedder.broken = None
    assert (await fill_vectors(store, embedder)).embedded == 64


async def test_an_embedder_that_fails_once_is_tried_again(store: MemoryStore) -> None:
    await put(store, "one")

    class Shaky(Embedder):
        async def embed_passages(self, texts) -> list[list[float]]:
            self.broken = TimeoutError() if len(self.batches) < 2 else None
            return await super().embed_passages(texts)

    embedder = Shaky()
    assert (await fill_vectors(store, embedder), await pending(store)) == (FillOutcome(embedded=1), [])
    assert embedder.batches == [1, 1, 1]


async def test_a_text_that_is_refused_costs_only_its_own_vector_and_no_word_of_it_is_told(store: MemoryStore) -> None:
    texts = [f"w{number}" for number in range(300)]
    await put(store, "secret poison", *texts, "poison too")
    embedder = Embedder()
    embedder.poison = {"poison"}
    outcome = await fill_vectors(store, embedder)
    assert (outcome.embedded, outcome.error) == (300, None)
    assert outcome.problem == "the embedder refuses 2 passages: ValueError"
    assert await pending(store) == ["c0", "c301"]


async def test_more_refused_texts_than_a_round_holds_hide_no_good_one(store: MemoryStore) -> None:
    await put(store, "w0", *(f"poison {number}" for number in range(300)), "w1")
    embedder = Embedder()
    embedder.poison = {"poison"}
    outcome = await fill_vectors(store, embedder)
    assert (outcome.embedded, len(outcome.refused), len(await pending(store))) == (2, 300, 300)


async def test_vectors_of_another_embedder_stay_as_they_are(store: MemoryStore) -> None:
    await put(store, "one")
    await fill_vectors(store, Embedder())
    await put(store, "two", prefix="d")
    newer = Embedder("newer")
    outcome = await fill_vectors(store, newer)
    assert outcome.error == (
        "EmbedderMismatchError: the stored vectors were made with 'HashingEmbeddings/hashing'; "
        "none of 'HashingEmbeddings/newer' can be added to them"
    )
    assert newer.batches == []
    assert await pending(store) == ["d0"]


async def test_an_embedder_that_changes_its_length_is_named(store: MemoryStore) -> None:
    await put(store, "one")
    await store.write_profile(StoreProfile(Embedder().identity, 3))
    outcome = await fill_vectors(store, Embedder())
    assert outcome.error == "KnowledgeBaseError: HashingEmbeddings/hashing gave 64 numbers a text, not 3"


async def test_chunks_deleted_while_they_are_embedded_stay_deleted(store: MemoryStore) -> None:
    await put(store, "one", "two")

    class Deleting(Embedder):
        async def embed_passages(self, texts) -> list[list[float]]:
            await store.remove_chunks(["c0"])
            return await super().embed_passages(texts)

    await fill_vectors(store, Deleting())
    assert ((await store.counts(Scope("acme"))).chunks, await store.vectors(["c0"])) == (1, {})


async def test_a_cancelled_fill_keeps_what_it_wrote_and_the_next_goes_on(store: MemoryStore) -> None:
    await put(store, *(f"w{number}" for number in range(100)))
    embedder = Embedder()
    half = asyncio.Event()
    filling = asyncio.create_task(fill_vectors(store, embedder, lambda count: half.set()))
    await half.wait()
    filling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await filling
    left = len(await pending(store))
    assert 0 < left < 100
    assert (await fill_vectors(store, embedder)).embedded == left


async def test_batch_by_batch_the_outcome_grows(store: MemoryStore) -> None:
    await put(store, *(f"w{number}" for number in range(40)))
    fill = VectorFill(Embedder())
    grown = []
    while await fill.advance(store):
        grown.append(fill.outcome.embedded)
    assert (grown[0] in {8, 32}, grown[1:]) == (True, [40])


async def test_two_fills_at_once_share_the_work(store: MemoryStore) -> None:
    await put(store, *(f"w{number}" for number in range(1000)))
    embedders = [Embedder(), Embedder()]
    outcomes = await asyncio.gather(*(fill_vectors(store, embedder) for embedder in embedders))
    assert [outcome.error for outcome in outcomes] == [None, None]
    assert await pending(store) == []
    assert len({text for embedder in embedders for text in embedder.texts.passages}) == 1000
    assert sum(len(embedder.texts.passages) for embedder in embedders) < 1900
