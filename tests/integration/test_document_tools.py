"""Whole turns that open documents: cited by place, recalled later, and nothing lost for the offline model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from langchain_core.messages import BaseMessage

from graphrag_agent import AgentContext, KnowledgeBase, RagAgent
from graphrag_agent.events import ToolProgress, ToolStart, event_from_dict
from graphrag_agent.testing import ScriptedChatModel, call
from graphrag_agent.tools.evidence_message import read_evidence

ROOT = Path(__file__).parents[2]


@pytest.fixture
def knowledge(monkeypatch: pytest.MonkeyPatch) -> Iterator[KnowledgeBase]:
    monkeypatch.chdir(ROOT)
    with KnowledgeBase.open(":memory:", embedder="none") as opened:
        opened.ingest("examples")
        yield opened


def cite_last(messages: list[BaseMessage], tools: tuple[str, ...]) -> str:
    item = list(read_evidence(messages).values())[-1]
    return f"Contractors have no paid leave under this policy. [{item.id}]"


def test_a_section_that_was_read_is_cited_by_its_place_and_comes_back_later(
    knowledge: KnowledgeBase,
) -> None:
    reading = call("read_document", document_id="Leave policy", heading="Contractors")
    with ScriptedChatModel(call("find_documents", query="leave"), reading, cite_last, "As said.") as model:
        agent = RagAgent(model=model, knowledge=knowledge)
        answer = agent.ask("What holds for contractors?")
        [cited] = answer.citations
        assert (cited.source, cited.heading) == ("examples/leave-policy.md", "Leave policy > Contractors")
        assert knowledge.read(cited.document_id, start=cited.start, end=cited.end) == cited.text
        assert (answer.outcome["ending"], cited.support) == ("answered", "supported")
        agent.ask("And what of it?", thread=answer.thread)
    asked = model.requests[-1].messages[-1].text
    assert f'<evidence id="{cited.id}"' in asked, "the passage stands behind the question"
    assert "Contractors have no paid leave under this policy." in asked
    [again] = agent.citations(answer.message_id, thread=answer.thread)
    assert (again.is_stale, again.citation.text) == (False, cited.text)


def test_a_found_document_and_a_summary_are_cited_by_their_source(knowledge: KnowledgeBase) -> None:
    def cite_all(messages: list[BaseMessage], tools: tuple[str, ...]) -> str:
        return " ".join(f"See this. [{item.id}]" for item in read_evidence(messages).values())

    calls = [
        call("find_documents", query="price-list.csv", limit=1),
        call("summarize_documents", document_ids=["Leave policy"]),
    ]
    written = "Leave is 25 days."
    with ScriptedChatModel(calls, written, cite_all) as model:
        answer = RagAgent(model=model, knowledge=knowledge).ask("What is there?")
    assert [(cited.source, cited.heading) for cited in answer.citations] == [
        ("examples/price-list.csv", ""),
        ("examples/leave-policy.md", "Summary"),
    ]
    assert answer.outcome["ending"] == "answered"


def test_progress_of_a_summary_is_an_event_of_its_call(knowledge: KnowledgeBase) -> None:
    summarizing = call("summarize_documents", document_ids=["Leave policy"])
    with ScriptedChatModel(summarizing, "Leave is 25 days.", "Done.") as model:
        events = list(RagAgent(model=model, knowledge=knowledge).stream("Sum up."))
    (start,) = [event for event in events if isinstance(event, ToolStart)]
    (progress,) = [event for event in events if isinstance(event, ToolProgress)]
    assert (progress.id, progress.name, progress.done, progress.total) == (start.id, "summarize_documents", 1, 1)
    assert event_from_dict(progress.as_dict()) == progress


def test_an_error_of_a_reading_tells_the_model_how_to_go_on(knowledge: KnowledgeBase) -> None:
    with ScriptedChatModel(call("read_document", document_id="Leave policy", page=3), "I can't.") as model:
        RagAgent(model=model, knowledge=knowledge).ask("Page three?")
    told = model.requests[-1].messages[-1].text
    assert "page=3 is not in this document: it has no pages; give a heading, or start" in told
    assert '"type": "ToolArgumentError"' in told


def test_the_offline_model_searches_whatever_else_is_offered(knowledge: KnowledgeBase) -> None:
    agent = RagAgent(model="offline", knowledge=knowledge)
    answer = agent.ask("What does E-1042 mean?")
    assert {traced.tool for traced in answer.trace} == {"knowledge_search"}
    assert answer.citations[0].source == "examples/weir-g4-product-notes.md"


def test_a_request_may_leave_tools_out_and_add_none(knowledge: KnowledgeBase) -> None:
    with ScriptedChatModel("No.", "No.") as model:
        agent = RagAgent(model=model, knowledge=knowledge)
        agent.ask("Hello?")
        agent.ask("Hello?", context=AgentContext(tools=("read_document", "web_search")))
    assert [len(request.tools) for request in model.requests] == [4, 1]
    assert model.requests[1].tools == ("read_document",)
