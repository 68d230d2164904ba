"""Strategy and reranking of a request, from the client's context down to the store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from graphrag_agent import AgentContext, Budget, KnowledgeBase, RagAgent
from graphrag_agent.errors import SettingsError
from graphrag_agent.knowledge_opening import open_knowledge_base
from graphrag_agent.settings import load_settings
from graphrag_agent.testing import ScriptedChatModel, call
from tests.fake_openai import FakeOpenAI

ONE_ANSWER = Budget(citation_policy="record")
"""The script's answers cite nothing, and are not to be asked for again."""


class Recording:
    name = "recording"

    def __init__(self) -> None:
        self.queries: list[str] = []

    async def rerank(self, query: str, texts: Sequence[str]) -> list[float]:
        self.queries.append(query)
        return [float(len(text)) for text in texts]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "leave.md").write_text("# Leave\n\nAnnual leave lasts 25 days.\n")
    (tmp_path / "pump.md").write_text("# Pump\n\nThe warranty of the pump is two years.\n")
    return tmp_path


@pytest.fixture
def reranker() -> Recording:
    return Recording()


@pytest.fixture
def knowledge(folder: Path, reranker: Recording) -> Iterator[KnowledgeBase]:
    with KnowledgeBase.open(":memory:", embedder=None, reranker=reranker) as opened:
        opened.ingest(folder)
        yield opened


def test_the_agents_model_writes_the_queries_of_a_request_that_asks_for_them(
    knowledge: KnowledgeBase, reranker: Recording
) -> None:
    steps = call("knowledge_search", query="vacation"), "annual leave days", "25 days."
    with ScriptedChatModel(*steps) as model:
        answer = RagAgent(model=model, knowledge=knowledge, budget=ONE_ANSWER).ask(
            "How long is my vacation?", context=AgentContext(strategy="multi_query", rerank=False)
        )
    assert [request.messages[-1].text for request in model.requests][1] == "<query>\nvacation\n</query>"
    assert "25 days" in model.requests[2].messages[-1].text
    assert answer.trace[0].found == 1
    assert reranker.queries == [], "the request left it out"


def test_without_a_choice_the_search_is_direct_and_reranked(knowledge: KnowledgeBase, reranker: Recording) -> None:
    with ScriptedChatModel(call("knowledge_search", query="annual leave"), "25 days.") as model:
        RagAgent(model=model, knowledge=knowledge, budget=ONE_ANSWER).ask("q", context=AgentContext(rerank=True))
    assert reranker.queries == ["annual leave"]


def test_a_strategy_that_nobody_can_write_for_is_searched_directly_and_says_so(knowledge: KnowledgeBase) -> None:
    answer = RagAgent(model="offline", knowledge=knowledge).ask(
        "How long is annual leave?", context=AgentContext(strategy="hyde")
    )
    assert "25 days" in answer.text
    result = knowledge.search("annual leave", strategy="hyde")
    assert result.note == "Only the query itself was searched: no chat model to write with."
    assert len(result.hits) == 1


def test_hyde_with_the_offline_model_is_refused_where_the_knowledge_base_is_opened(folder: Path) -> None:
    with pytest.raises(SettingsError, match="set GRAPHRAG_MODEL"):
        open_knowledge_base(load_settings(kb=str(folder / "kb"), embedder="none", strategy="hyde"))
    assert not (folder / "kb").exists()
    with pytest.raises(SettingsError, match="query_writer="):
        KnowledgeBase.open(":memory:", embedder=None, strategy="hyde")


def test_the_model_of_the_settings_writes_for_a_search_that_asks_for_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    with FakeOpenAI(lambda body: "how long is leave\npump warranty") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        settings = load_settings(kb=":memory:", embedder="none", model="openai:m")
        with open_knowledge_base(settings) as opened:
            opened.ingest(folder)
            trace = opened.search("holidays", strategy="multi_query").trace
    assert (trace["strategy"]["name"], trace["strategy"]["writer"]) == ("multi_query", "model")
    assert trace["queries"] == ["holidays", "how long is leave", "pump warranty"]


def test_settings_choose_fusion_strategy_and_variety(folder: Path) -> None:
    settings = load_settings(
        kb=":memory:", embedder="none", fusion="rrf", strategy="multi_query", diversity=True, reranker="none"
    )
    with open_knowledge_base(settings) as opened:
        opened.ingest(folder)
        trace = opened.search("How long is annual leave and what is the warranty of the pump?").trace
        asked = opened.search("leave", fusion="min_max", strategy="direct", diversity=False).trace
    assert (trace["fusion"], trace["strategy"], trace["diversity"]) == (
        "rrf",
        {"name": "multi_query", "writer": "rules"},
        True,
    )
    assert trace["queries"][1:3] == ["How long is annual leave", "what is the warranty of the pump?"]
    assert (asked["fusion"], asked["strategy"]["name"], asked["diversity"]) == ("min_max", "direct", False)


@pytest.mark.parametrize("choice", [{"fusion": "borda"}, {"strategy": "magic"}])
def test_unknown_choices_are_refused(knowledge: KnowledgeBase, choice: dict[str, str]) -> None:
    with pytest.raises(SettingsError, match="is unknown: use one of"):
        knowledge.search("leave", **choice)  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match="is unknown: use one of"):
        KnowledgeBase.open(":memory:", embedder=None, **choice)  # type: ignore[arg-type]
