"""The facade: answers, threads, events, principals."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import tool
from langgraph.config import get_stream_writer

from graphrag_agent import AgentContext, Principal, RagAgent, acting_as
from graphrag_agent.errors import SettingsError, ThreadError
from graphrag_agent.events import AnswerReady, CitationFound, TextDelta, ToolEnd, ToolStart, TurnEnded, TurnStarted
from graphrag_agent.graph import eager
from graphrag_agent.identity import acting_principal
from graphrag_agent.persistence.checkpointers import open_checkpointer_sync
from graphrag_agent.testing import ScriptedChatModel, call
from tests.canned import CannedKnowledge, id_of

CITED = id_of("All about leave.")


def agent(*steps: Any, knowledge: CannedKnowledge | None = None) -> RagAgent:
    return RagAgent(model=ScriptedChatModel(*steps), knowledge=knowledge or CannedKnowledge())


def search() -> Any:
    return call("knowledge_search", query="leave")


def test_an_answer_has_its_text_citations_trace_and_outcome():
    answer = agent(search(), f"Ten days [{CITED}].").ask("How long?")
    assert answer.text == f"Ten days [{CITED}]."
    (citation,) = answer.citations
    assert (citation.id, citation.text, citation.source) == (CITED, "All about leave.", "leave.md")
    (traced,) = answer.trace
    assert (traced.tool, dict(traced.arguments), traced.found) == ("knowledge_search", {"query": "leave"}, 1)
    assert answer.outcome["ending"] == "answered"


def test_a_thread_goes_on_and_another_is_apart():
    rag = agent("first", "second", "third")
    thread = rag.ask("one?").thread
    rag.ask("two?", thread=thread)
    rag.ask("three?")
    assert [message.text for message in rag.history(thread)] == ["one?", "first", "two?", "second"]
    assert rag.history("unknown") == []


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_what_is_changed_in_what_was_given_stays_out_of_the_thread(kind: Any, tmp_path: Path):
    with open_checkpointer_sync(kind, tmp_path / "t.sqlite") as saver:
        model = ScriptedChatModel(search(), f"Ten days [{CITED}].", "second")
        rag = RagAgent(model=model, knowledge=CannedKnowledge(), checkpointer=saver)
        answer = rag.ask("How long is the annual leave, please?", thread="t")
        answer.outcome["ending"] = "changed"  # type: ignore[index]
        before = [message.model_dump() for message in rag.history("t")]
        for message in rag.history("t"):
            message.content = "[redacted]"
            message.additional_kwargs["ending"] = "changed"
            for citation in message.response_metadata.get("citations", ()):
                citation["source"] = "changed"
            message.response_metadata.clear()
        assert [message.model_dump() for message in rag.history("t")] == before
        assert [found.citation.source for found in rag.citations(answer.message_id, thread="t")] == ["leave.md"]
        rag.ask("two?", thread="t")
    assert "[redacted]" not in str(model.requests[-1].messages)


def test_the_events_of_a_turn_come_in_order_and_add_up():
    events = list(agent(search(), f"Ten days [{CITED}].").stream("How long?"))
    kinds = [type(event) for event in events if not isinstance(event, TextDelta)]
    assert kinds == [TurnStarted, ToolStart, ToolEnd, CitationFound, AnswerReady, TurnEnded]
    text = "".join(event.text for event in events if isinstance(event, TextDelta))
    assert text == f"Ten days [{CITED}]."
    assert next(event.query for event in events if isinstance(event, ToolStart)) == "leave"
    assert next(event.found for event in events if isinstance(event, ToolEnd)) == 1


async def test_async_events_are_the_same_as_sync_ones():
    def kinds(events: list[Any]) -> list[str]:
        return [event.type for event in events]

    script = (search(), f"Ten days [{CITED}].")
    awaited = [event async for event in agent(*script).astream("How long?")]
    assert kinds(awaited) == kinds(list(agent(*script).stream("How long?")))


async def test_closing_the_stream_stops_the_turn(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(eager, "LEASE_SECONDS", 0.05)
    started, stopped = asyncio.Event(), asyncio.Event()

    class Stuck(CannedKnowledge):
        async def asearch(self, *args: Any, **kwargs: Any) -> Any:
            started.set()
            try:
                await asyncio.sleep(60)
            finally:
                stopped.set()

    events = agent(search(), "never", knowledge=Stuck()).astream("How long?")
    async for event in events:
        if isinstance(event, ToolStart):
            break
    await started.wait()
    await events.aclose()  # type: ignore[attr-defined]
    await asyncio.wait_for(stopped.wait(), 20)


def test_the_scope_of_a_search_is_the_principals_narrowed_by_the_context():
    knowledge = CannedKnowledge()
    agent(search(), "done", knowledge=knowledge).ask(
        "How long?",
        principal=Principal(tenant="acme", user="ann", groups=("hr",)),
        context={"collections": ["policies"]},
    )
    (scope,) = knowledge.scopes
    assert (scope.tenant, scope.groups, scope.collections) == ("acme", {"hr"}, {"policies"})


@pytest.mark.parametrize("way", ["ask", "stream"])
def test_the_surrounding_principal_counts_and_does_not_leak(way: str):
    knowledge = CannedKnowledge()
    rag = agent(search(), "done", search(), "done", knowledge=knowledge)
    with acting_as(Principal(tenant="acme")):
        list(rag.stream("How long?")) if way == "stream" else rag.ask("How long?")
    rag.ask("How long?")
    assert [scope.tenant for scope in knowledge.scopes] == ["acme", "default"]


async def test_a_stream_keeps_its_principal_and_leaves_its_readers_alone():
    knowledge = CannedKnowledge()
    rag = agent(search(), "done", knowledge=knowledge)
    async for _ in rag.astream("How long?", principal=Principal(tenant="acme")):
        assert acting_principal().tenant == "default"
    assert [scope.tenant for scope in knowledge.scopes] == ["acme"]


@pytest.mark.parametrize(
    "written",
    [
        {"event": "tool_progress", "percent": 50},
        {"event": "tool_start"},
        {"event": "tool_end", "id": "x", "name": "report", "found": 0, "is_error": False, "seconds": 1.0},
        {"event": "answer", "text": "half"},
        {"event": "answer", "text": "No.", "message_id": "m", "citations": [], "outcome": {}},
        {"event": ["tool_start"]},
        "half",
    ],
    ids=str,
)
@pytest.mark.parametrize("is_free", [True, False], ids=["early", "alone"])
def test_what_a_tool_writes_to_the_custom_stream_is_no_event_of_the_turn(written: Any, is_free: bool):
    @tool
    async def report(about: str) -> str:
        """Reports."""
        get_stream_writer()(written)
        return "reported"

    report.metadata = {"side_effect_free": is_free}
    rag = RagAgent(model=ScriptedChatModel(*[call("report", about="x"), "Yes."] * 2), tools=[report])
    answer = rag.ask("q")
    assert (answer.text, [traced.tool for traced in answer.trace]) == ("Yes.", ["report"])
    types = [event.type for event in rag.stream("q") if not isinstance(event, TextDelta)]
    assert types == ["turn_started", "tool_start", "tool_end", "answer", "turn_ended"]


def test_bad_input_is_refused_with_its_value():
    with pytest.raises(SettingsError, match="question='  ' is empty"):
        agent().ask("  ")
    with pytest.raises(SettingsError, match="max_rounds=0"):
        agent().ask("q", context={"max_rounds": 0})
    with pytest.raises(SettingsError, match="tenant='x': Extra inputs"):
        agent().ask("q", context={"tenant": "x"})
    for blank in ("", " "):
        with pytest.raises(ThreadError, match=f"thread='{blank}' is empty"):
            agent().ask("q", thread=blank)
    with pytest.raises(SettingsError, match="mode='chat' is unknown"):
        RagAgent(model="offline", mode="chat")


def test_an_answer_shows_its_sources_in_a_notebook():
    shown = agent(search(), f"Ten days [{CITED}].").ask("How long?")._repr_markdown_()
    assert shown == "Ten days [1].\n\n1. Leave (leave.md), Policy"


def test_context_may_be_an_object():
    knowledge = CannedKnowledge()
    agent("hello", knowledge=knowledge).ask("q", context=AgentContext(retrieval="none"))
    assert knowledge.queries == []


def test_a_stream_is_the_turn_of_who_acted_when_it_was_asked_for():
    ann = Principal(tenant="acme", user="ann")
    rag = RagAgent(model=ScriptedChatModel("Hello."))
    with acting_as(ann):
        events = rag.stream("Hi?", thread="t")
    assert [event.type for event in events][-1] == "turn_ended"
    assert len(rag.history("t", principal=ann)) == 2
    assert rag.history("t") == []


def test_who_leaves_a_stream_can_ask_again_at_once():
    rag = RagAgent(model=ScriptedChatModel(*["Hello to you, and to all of yours."] * 12, chunk_delay_seconds=0.01))
    for _ in range(5):
        for _event in rag.stream("Hi?", thread="t"):
            break
        assert rag.ask("Hi again?", thread="t").text.startswith("Hello")


def test_the_event_of_an_error_has_an_id_behind_the_last_ones(monkeypatch: pytest.MonkeyPatch):
    async def broken(*args: Any, **options: Any) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr("graphrag_agent.graph.nodes.start_turn.recall_evidence", broken)
    seen: list[Any] = []
    rag = RagAgent(model=ScriptedChatModel())
    with pytest.raises(RuntimeError, match="boom"):
        for event in rag.stream("q", thread="t"):
            seen.append(event)
    ids = [event.event_id for event in seen]
    assert seen[-1].type == "error"
    assert ids == [f"{ids[0].partition(':')[0]}:{number}" for number in range(1, len(ids) + 1)]
