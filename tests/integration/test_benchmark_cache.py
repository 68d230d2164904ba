"""The benchmark's embedder embeds a text once, in this run and the next."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import retrieval
from benchmarks.embedding_cache import CachedEmbedder
from graphrag_agent.retrieval.embedders import LangChainEmbedder
from graphrag_agent.retrieval.knowledge_base import KnowledgeBase
from graphrag_agent.retrieval.search.result import SearchResult
from graphrag_agent.retrieval.search.strategies import StrategyName
from tests.hashing_embeddings import HashingEmbeddings

TEXTS = ["the pump hums", "the gate", "the pump hums", "half a \ud800 character"]


def test_a_second_run_embeds_nothing_and_gets_the_same_vectors(tmp_path: Path):
    first, second = HashingEmbeddings(), HashingEmbeddings()
    with CachedEmbedder(LangChainEmbedder(first), tmp_path / "cache.sqlite") as cached:
        vectors = asyncio.run(cached.embed_passages(TEXTS))
        query = asyncio.run(cached.embed_query("the pump hums"))
    with CachedEmbedder(LangChainEmbedder(second), tmp_path / "cache.sqlite") as cached:
        assert asyncio.run(cached.embed_passages(TEXTS)) == vectors
        assert asyncio.run(cached.embed_query("the pump hums")) == query
        assert cached.identity == "HashingEmbeddings/hashing"
    assert first.passages == ["the pump hums", "the gate", "half a ? character"]
    assert (first.queries, second.passages, second.queries) == (["the pump hums"], [], [])
    plain = asyncio.run(LangChainEmbedder(first).embed_passages(TEXTS))
    assert vectors == [pytest.approx(vector, abs=1e-6) for vector in plain]


def test_passages_queries_and_embedders_do_not_share_vectors(tmp_path: Path):
    one, other = HashingEmbeddings("one"), HashingEmbeddings("other")
    with CachedEmbedder(LangChainEmbedder(one), tmp_path / "cache.sqlite") as cached:
        asyncio.run(cached.embed_passages(["pump"]))
        asyncio.run(cached.embed_query("pump"))
    with CachedEmbedder(LangChainEmbedder(other), tmp_path / "cache.sqlite") as cached:
        asyncio.run(cached.embed_passages(["pump"]))
    assert (one.passages, one.queries, other.passages) == (["pump"], ["pump"], ["pump"])


def test_what_was_embedded_before_a_failure_is_kept(tmp_path: Path):
    class Breaks(HashingEmbeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            if self.passages:
                raise ConnectionError("gone")
            return super().embed_documents(texts)

    texts = [f"text {number}" for number in range(40)]
    broken = LangChainEmbedder(Breaks())
    with CachedEmbedder(broken, tmp_path / "cache.sqlite") as cached, pytest.raises(ConnectionError):
        asyncio.run(cached.embed_passages(texts))
    late = HashingEmbeddings()
    late_embedder = LangChainEmbedder(late, identity="Breaks/hashing")
    with CachedEmbedder(late_embedder, tmp_path / "cache.sqlite") as cached:
        asyncio.run(cached.embed_passages(texts))
    assert late.passages == texts[32:]


def test_a_benchmark_run_again_embeds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    rows = [{"doc_id": f"d{number}", "title": "", "text": text} for number, text in enumerate(TEXTS[:2])]
    (tmp_path / "corpus.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    query = {"id": "q", "question": "what hums at the pump?", "gold_doc_ids": ["d0"]}
    (tmp_path / "queries.jsonl").write_text(json.dumps(query), encoding="utf-8")
    embeddings = HashingEmbeddings()
    monkeypatch.setattr(retrieval, "resolve_embedder", lambda name: LangChainEmbedder(embeddings))
    options = ["--data", str(tmp_path), "--cache", str(tmp_path / "cache.sqlite"), "--json"]
    reports = []
    for _ in range(2):
        assert retrieval.main(options) == 0
        reports.append(json.loads(capsys.readouterr().out))
    assert len(embeddings.passages) == 2
    assert len(embeddings.queries) == len(set(embeddings.queries)) > 0
    quality = [{name: {**leg, "query_ms": 0} for name, leg in report["legs"].items()} for report in reports]
    assert quality[0] == quality[1]
    assert quality[0]["hybrid"]["mrr"] == 1.0
    assert list(quality[0]) == ["bm25", "dense", "hybrid", "hybrid_rrf", "hybrid_minmax", "multi_query"]
    assert reports[0]["not_run"] == {"hyde": "not run: needs a chat model (--model)"}


async def test_each_row_searches_as_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    rows = [{"doc_id": f"d{number}", "title": "", "text": text} for number, text in enumerate(TEXTS[:2])]
    (tmp_path / "corpus.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    query = {"id": "q", "question": "what hums at the pump?", "gold_doc_ids": ["d0"]}
    (tmp_path / "queries.jsonl").write_text(json.dumps(query), encoding="utf-8")
    searched: list[tuple[object, ...]] = []
    search = KnowledgeBase.asearch

    async def noted(self: KnowledgeBase, query: str, **options: Any) -> SearchResult:
        result = await search(self, query, **options)
        legs = tuple(dict.fromkeys(name.partition("/")[0] for name in result.trace["legs"]))
        searched.append((legs, result.trace["fusion"], result.trace["strategy"]["name"]))
        return result

    monkeypatch.setattr(KnowledgeBase, "asearch", noted)
    report = await retrieval.measure(tmp_path, [], None, LangChainEmbedder(HashingEmbeddings()), Writer())
    both = ("bm25", "dense")
    assert list(dict.fromkeys(searched)) == [
        (("bm25",), "dbsf", "direct"),
        (("dense",), "dbsf", "direct"),
        (both, "dbsf", "direct"),
        (both, "rrf", "direct"),
        (both, "min_max", "direct"),
        (both, "dbsf", "multi_query"),
        (both, "dbsf", "hyde"),
    ]
    assert (list(report["legs"]), report["not_run"]) == (list(retrieval.ROWS), {})


class Writer:
    async def write(self, query: str, kind: StrategyName) -> list[str]:
        return ["the pump hums loudly"]
