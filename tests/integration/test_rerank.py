"""Reranking from settings to the answer, over real HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from graphrag_agent import KnowledgeBase, RagAgent
from graphrag_agent.errors import SettingsError
from graphrag_agent.knowledge_opening import open_knowledge_base
from graphrag_agent.settings import load_settings
from graphrag_agent.testing import ScriptedChatModel, call
from tests.fake_cohere import Failure, FakeCohere, by_overlap

QUESTION = "how long is the warranty of the pump"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").mkdir()
    for name in ("pump", "gate", "roof"):
        text = f"# {name.title()}\n\nThe warranty of the {name} is long: {len(name)} years.\n"
        (tmp_path / "docs" / f"{name}.md").write_text(text, encoding="utf-8")
    yield tmp_path


def test_settings_bring_the_reranker_and_its_model(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeCohere(by_overlap) as server:
        monkeypatch.setenv("CO_API_URL", server.base_url)
        settings = load_settings(kb=":memory:", embedder="none", reranker="cohere", rerank_model="rerank-ours")
        with open_knowledge_base(settings) as knowledge:
            knowledge.ingest("docs")
            result = knowledge.search(QUESTION)
    assert (result.hits[0].chunk.title, result.hits[0].legs["rerank"].rank) == ("Pump", 1)
    assert result.trace["rerank"]["name"] == "cohere/rerank-ours"
    [body] = server.bodies
    assert (body["model"], body["query"], len(body["documents"])) == ("rerank-ours", QUESTION, 3)


def test_nothing_is_sent_unless_asked_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeCohere() as server:
        monkeypatch.setenv("CO_API_URL", server.base_url)
        monkeypatch.setenv("CO_API_KEY", "k")
        with open_knowledge_base(load_settings(kb=":memory:", embedder="none")) as knowledge:
            knowledge.ingest("docs")
            assert knowledge.search(QUESTION).trace["rerank"] == {"skipped": "no reranker"}
    assert server.bodies == []


def test_a_reranker_without_key_or_address_is_refused_at_once(folder: Path) -> None:
    with pytest.raises(SettingsError, match="CO_API_KEY"):
        KnowledgeBase.open(folder / "kb", embedder="none", reranker="cohere")
    assert not (folder / "kb").exists()


def test_a_turn_with_a_broken_reranker_is_answered_and_the_model_is_told(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = ScriptedChatModel(call("knowledge_search", query=QUESTION), "Four years.")
    with FakeCohere(Failure(503)) as server:
        monkeypatch.setenv("CO_API_URL", server.base_url)
        with KnowledgeBase.open(":memory:", embedder="none", reranker="cohere") as knowledge:
            knowledge.ingest("docs")
            answer = RagAgent(model=model, knowledge=knowledge).ask(QUESTION)
    assert answer.text == "Four years."
    shown = str(model.requests[-1].messages)
    assert "The reranker failed, so the passages are in the order of the search itself." in shown
    assert "warranty of the pump" in shown
