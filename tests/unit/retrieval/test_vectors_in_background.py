from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from weakref import ref

import pytest

from graphrag_agent.errors import EmbedderMismatchError, SettingsError
from graphrag_agent.retrieval.embedders import LangChainEmbedder
from graphrag_agent.retrieval.ingestion import background, embedding
from graphrag_agent.retrieval.ingestion.embedding import VECTORS, EmbeddingReport
from graphrag_agent.retrieval.knowledge_base import KnowledgeBase
from graphrag_agent.retrieval.scope import Scope
from tests.hashing_embeddings import HashingEmbeddings
from tests.waiting import until

ROOT = Path(__file__).parents[3]


class GatedEmbedder(LangChainEmbedder):
    """Embeds passages only while its gate is open; queries always. Fails while `broken`."""

    def __init__(self, model: str = "hashing") -> None:
        self.texts = HashingEmbeddings(model)
        self.gate = threading.Event()
        self.asked = 0
        self.broken: Exception | None = None
        super().__init__(self.texts)

    async def embed_passages(self, texts) -> list[list[float]]:
        self.asked += 1
        if self.broken:
            raise type(self.broken)(*self.broken.args)  # the traceback of one that is kept would hold the store
        while not self.gate.is_set():  # noqa: ASYNC110  # set from another thread
            await asyncio.sleep(0.005)
        return await super().embed_passages(texts)


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding, "_RETRY_SECONDS", (0.0,))
    monkeypatch.setattr(background, "_RETRY_SECONDS", (0.02,))
    monkeypatch.setattr(background, "_RESUME_SECONDS", 0.0)


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    for number in range(5):
        (folder / f"{number}.md").write_text(f"# Note {number}\n\nword w{number}\n", encoding="utf-8")
    return folder


@pytest.fixture(params=[":memory:", "embedded"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> str | Path:
    return ":memory:" if request.param == ":memory:" else tmp_path / "kb"


def test_words_answer_while_vectors_are_made_and_the_search_says_what_is_pending(
    location: str | Path, docs: Path
) -> None:
    embedder = GatedEmbedder()
    with KnowledgeBase.open(location, embedder=embedder) as knowledge:
        report = knowledge.ingest(docs, wait_for_vectors=False)
        assert (report.documents, report.pending, report.embedding_problem) == (5, 5, None)
        result = knowledge.search("w3")
        assert result.hits[0].chunk.text.endswith("w3")
        assert result.trace["legs"]["dense"] == {"skipped": "no vectors stored", "pending": 5, "of": 5}
        assert "5 of 5 passages have no vectors yet" in result.note
        assert knowledge.stats().pending == 5
        embedder.gate.set()
        until(lambda: knowledge.stats().pending == 0)
        result = knowledge.search("w3")
        assert (result.trace["legs"]["dense"]["candidates"], result.trace["legs"]["dense"]["pending"]) == (5, 0)
        assert result.note == ""


def test_a_search_counts_only_what_is_pending_in_its_scope(docs: Path) -> None:
    with KnowledgeBase.open(":memory:", embedder=GatedEmbedder()) as knowledge:
        knowledge.ingest(docs / "0.md", tenant="acme", groups=["hr"], wait_for_vectors=False)
        knowledge.ingest(docs / "1.md", tenant="globex", wait_for_vectors=False)
        for scope, pending in [(Scope("acme"), 0), (Scope("acme", frozenset({"hr"})), 1), (Scope("globex"), 1)]:
            assert knowledge.search("w", scope=scope).trace["legs"]["dense"]["pending"] == pending
            assert knowledge.stats(scope).pending == pending


def test_closing_stops_the_work_and_the_next_search_takes_it_up(tmp_path: Path, docs: Path) -> None:
    stuck = GatedEmbedder()
    with KnowledgeBase.open(tmp_path / "kb", embedder=stuck) as knowledge:
        knowledge.ingest(docs, wait_for_vectors=False)
        until(lambda: stuck.asked == 1)
    embedder = GatedEmbedder()
    embedder.gate.set()
    with KnowledgeBase.open(tmp_path / "kb", embedder=embedder) as knowledge:
        assert (knowledge.stats().pending, embedder.asked) == (5, 0)
        knowledge.search("w3")
        until(lambda: knowledge.stats().pending == 0)
        assert knowledge.ingest(docs).unchanged == 5
    assert stuck.texts.passages == []


def test_an_embedder_that_comes_back_is_tried_again(docs: Path) -> None:
    embedder = GatedEmbedder()
    embedder.gate.set()
    embedder.broken = ConnectionError("no route")
    with KnowledgeBase.open(":memory:", embedder=embedder) as knowledge:
        knowledge.ingest(docs, wait_for_vectors=False)
        until(lambda: knowledge.stats().problem == "ConnectionError: no route")
        assert knowledge.stats(Scope("other")).problem is None
        embedder.broken = None
        until(lambda: knowledge.stats().pending == 0)
        assert knowledge.stats().problem is None


def test_an_ingest_that_waits_reports_why_vectors_are_missing_and_fails_no_file(docs: Path) -> None:
    embedder = GatedEmbedder()
    embedder.gate.set()
    embedder.broken = ConnectionError("no route")
    with KnowledgeBase.open(":memory:", embedder=embedder) as knowledge:
        report = knowledge.ingest(docs)
        assert (report.documents, report.failed) == (5, ())
        assert (report.pending, report.embedding_problem) == (5, "ConnectionError: no route")
        embedder.broken = None
        assert knowledge.embed_pending().pending == 0


def test_progress_tells_of_files_and_then_of_vectors(docs: Path) -> None:
    told: list[tuple[int, int, str]] = []
    with KnowledgeBase.open(":memory:", embedder=HashingEmbeddings()) as knowledge:
        knowledge.ingest(docs, progress=lambda *step: told.append(step))
    assert told[4][:2] == (5, 5)
    assert told[5:] == [(5, 5, VECTORS)]


def test_documents_ingested_while_vectors_are_made_get_theirs_too(docs: Path) -> None:
    embedder = GatedEmbedder()
    with KnowledgeBase.open(":memory:", embedder=embedder) as knowledge:
        knowledge.ingest(docs / "0.md", wait_for_vectors=False)
        until(lambda: embedder.asked == 1)
        knowledge.ingest(docs, wait_for_vectors=False)
        embedder.gate.set()
        until(lambda: knowledge.stats().pending == 0)


def test_async_callers_on_two_loops_share_the_background(docs: Path) -> None:
    embedder = GatedEmbedder()
    embedder.gate.set()
    knowledge = KnowledgeBase.open(":memory:", embedder=embedder)
    asyncio.run(knowledge.aingest(docs, wait_for_vectors=False))

    async def wait_and_close() -> int:
        report = await knowledge.aembed_pending()
        await knowledge.aclose()
        return report.pending

    assert asyncio.run(wait_and_close()) == 0


def test_a_knowledge_base_that_is_dropped_frees_its_folder_though_vectors_are_pending(
    tmp_path: Path, docs: Path
) -> None:
    embedder = GatedEmbedder()
    embedder.broken = ConnectionError("no route")
    knowledge = KnowledgeBase.open(tmp_path / "kb", embedder=embedder)
    knowledge.ingest(docs, wait_for_vectors=False)
    until(lambda: embedder.asked > 3)
    gone = ref(knowledge._store)
    del knowledge

    def is_free() -> bool:
        gc.collect()
        return gone() is None

    until(is_free)


def test_another_embedder_makes_all_vectors_anew_while_words_answer(tmp_path: Path, docs: Path) -> None:
    with KnowledgeBase.open(tmp_path / "kb", embedder=HashingEmbeddings("one")) as knowledge:
        knowledge.ingest(docs)
    with pytest.raises(EmbedderMismatchError, match="graphrag-agent reembed"):
        KnowledgeBase.open(tmp_path / "kb", embedder=HashingEmbeddings("two"))
    with pytest.raises(SettingsError, match="no embedder to make vectors with: set GRAPHRAG_EMBEDDER"):
        KnowledgeBase.open(tmp_path / "kb", embedder="none", reembed=True)
    embedder = GatedEmbedder("two")
    with KnowledgeBase.open(tmp_path / "kb", embedder=embedder, reembed=True) as knowledge:
        assert knowledge.search("w3").hits[0].chunk.text.endswith("w3")
        embedder.gate.set()
        assert knowledge.embed_pending().pending == 0
        assert knowledge.stats()[:4] == (5, 5, "HashingEmbeddings/two", 0)
    with KnowledgeBase.open(tmp_path / "kb", embedder=HashingEmbeddings("two"), reembed=True) as knowledge:
        assert knowledge.stats().pending == 0
        assert knowledge.reembed() == EmbeddingReport(embedded=5, pending=0)


def test_without_an_embedder_there_is_nothing_to_reembed_with(docs: Path) -> None:
    with KnowledgeBase.open(":memory:", embedder=None) as knowledge:
        report = knowledge.ingest(docs)
        assert (report.pending, knowledge.embed_pending()) == (5, EmbeddingReport(embedded=0, pending=5))
        assert knowledge.search("w3").note == ""
        with pytest.raises(SettingsError, match="no embedder"):
            knowledge.reembed()


KILLED = """
import os, signal, sys, time
from graphrag_agent.retrieval.ingestion import embedding
from graphrag_agent.retrieval.knowledge_base import KnowledgeBase
from tests.hashing_embeddings import HashingEmbeddings
embedding.BATCH_CHUNKS = 8
embedding._FLUSH_SECONDS = 0

embed = HashingEmbeddings.embed_documents

def kill(self, texts):
    if len(self.passages) >= 40:
        os.kill(os.getpid(), signal.SIGKILL)
    return embed(self, texts)

HashingEmbeddings.embed_documents = kill

folder, how = sys.argv[1:]
model = "two" if how == "reembed" else "one"
knowledge = KnowledgeBase.open(folder + "/kb", embedder=HashingEmbeddings(model), reembed=how == "reembed")
if how == "reembed":
    knowledge.embed_pending()
else:
    knowledge.ingest(folder + "/docs", wait_for_vectors=how == "waiting")
time.sleep(60)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL on this system")
@pytest.mark.parametrize("how", ["waiting", "background", "reembed"])
def test_after_a_kill_among_vectors_the_next_run_makes_only_those_that_are_missing(tmp_path: Path, how: str) -> None:
    (tmp_path / "docs").mkdir()
    for number in range(80):
        (tmp_path / "docs" / f"{number:02}.md").write_text(f"# Note {number}\n\nword w{number}\n", encoding="utf-8")
    if how == "reembed":
        with KnowledgeBase.open(tmp_path / "kb", embedder=HashingEmbeddings("one")) as knowledge:
            knowledge.ingest(tmp_path / "docs")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])}
    command = [sys.executable, "-c", KILLED, str(tmp_path), how]
    assert subprocess.run(command, env=environment, check=False, timeout=60).returncode == -signal.SIGKILL
    embeddings = HashingEmbeddings("two" if how == "reembed" else "one")
    with KnowledgeBase.open(tmp_path / "kb", embedder=embeddings) as knowledge:
        assert 0 < knowledge.stats().pending <= 48
        report = knowledge.ingest(tmp_path / "docs")
        assert (report.unchanged, report.pending) == (80, 0)
        assert 0 < len(embeddings.passages) <= 48
        result = knowledge.search("w79", legs=["dense"])
        assert result.trace["legs"]["dense"]["pending"] == 0
        assert any(hit.chunk.text.endswith("w79") for hit in result.hits)


def test_what_keeps_back_another_tenants_vectors_is_told_to_the_operator_and_not_to_a_tenant(docs: Path) -> None:
    embedder = GatedEmbedder()
    embedder.broken = RuntimeError("no GPU")
    with KnowledgeBase.open(":memory:", embedder=embedder) as knowledge:
        knowledge.ingest(docs, tenant="acme", wait_for_vectors=False)
        report = knowledge.embed_pending()
        assert (report.pending, report.problem) == (0, "RuntimeError")
        assert report.own_problem is None


def test_progress_tells_no_tenant_of_the_vectors_of_others() -> None:
    told: list[tuple[int, int]] = []
    vectors = embedding.VectorsTold(lambda done, total, name: told.append((done, total)), 2)
    for count in (1, 3, 5):
        vectors(count)
    assert told == [(1, 2), (2, 2), (2, 2)]
    told.clear()
    embedding.VectorsTold(lambda done, total, name: told.append((done, total)), 0)(7)
    assert told == []


def test_a_providers_message_is_not_shown_though_its_error_is_an_os_error() -> None:
    class RequestError(OSError):
        pass

    assert embedding.described(RequestError("https://x?key=SECRET")) == "RequestError"
    assert embedding.described(ConnectionRefusedError("refused")) == "ConnectionRefusedError: refused"
