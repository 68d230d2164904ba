"""Tools that the client runs: handed out by one interrupt, beside the server's calls."""

import json
from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from graphrag_agent import RagAgent, build_rag_graph
from graphrag_agent.errors import SettingsError
from graphrag_agent.events import ClientToolsRequested
from graphrag_agent.graph.policy.pairing import pairing_problems
from graphrag_agent.testing import ScriptedChatModel, call
from tests.canned import CannedKnowledge
from tests.integration.test_threads import saver

ASK = {"messages": [{"role": "user", "content": "Open it."}]}
THREAD: Any = {"configurable": {"thread_id": "t"}}
PANEL = {
    "name": "open_panel",
    "description": "Opens a panel in the user's window.",
    "parameters": {"type": "object", "properties": {"tab": {"type": "string"}}, "required": ["tab"]},
}
CONTEXT = {"client_tools": [PANEL]}
BATCH = [
    call("knowledge_search", query="a"),
    {**call("open_panel", tab="one"), "id": "p1"},
    {**call("open_panel", tab="two"), "id": "p2"},
]


def results(model: ScriptedChatModel) -> list[str]:
    return [m.text.partition("\n\n[Left")[0] for m in model.requests[-1].messages if m.type == "tool"]


@pytest.mark.parametrize(
    "value",
    [
        {"results": {"p1": {"ok": 1}, "p2": "closed"}},
        json.dumps({"results": {"p1": {"ok": 1}, "p2": "closed"}}),
        {"p1": {"ok": 1}, "p2": "closed"},
    ],
    ids=["wrapped", "json text", "bare"],
)
@pytest.mark.parametrize("durability", ["sync", "exit"])
def test_one_interrupt_lists_all_and_a_restart_lies_between(tmp_path: Path, value: Any, durability: Any):
    knowledge = CannedKnowledge()

    def graph(model: Any) -> Any:  # a new graph on a new connection, as after a restart
        return build_rag_graph(model=model, knowledge=knowledge, checkpointer=saver(tmp_path / "t.sqlite"))

    with ScriptedChatModel(BATCH) as model:
        out = graph(model).invoke(ASK, THREAD, context=CONTEXT, durability=durability)
    (waiting,) = out["__interrupt__"]
    assert waiting.value == {
        "client_tools": [
            {"id": "p1", "name": "open_panel", "args": {"tab": "one"}},
            {"id": "p2", "name": "open_panel", "args": {"tab": "two"}},
        ]
    }
    assert model.requests[0].tools == ("knowledge_search", "open_panel")
    with ScriptedChatModel("Opened.") as model:
        done = graph(model).invoke(Command(resume=value), THREAD, context=CONTEXT, durability=durability)
    assert done["messages"][-1].text == "Opened."
    assert knowledge.queries == ["a"], "no search is repeated"
    assert pairing_problems(model.requests[0].messages) == []
    assert results(model)[1:] == ['{"ok": 1}', "closed"]


def test_a_result_that_is_missing_becomes_an_error_and_nonsense_too():
    for value, told in (
        ({"results": {"p1": ""}}, "the client sent no result"),
        ("not json", "not valid JSON"),
        ({"results": [1]}, "the client sent no {"),
    ):
        with ScriptedChatModel(BATCH, "Done.") as model:
            graph = build_rag_graph(model=model, knowledge=CannedKnowledge(), checkpointer=InMemorySaver())
            graph.invoke(ASK, THREAD, context=CONTEXT)
            out = graph.invoke(Command(resume=value), THREAD, context=CONTEXT)
        assert out["messages"][-1].text == "Done."
        assert told in results(model)[2]
        assert pairing_problems(model.requests[-1].messages) == []


def test_the_facade_hands_the_calls_out_and_takes_results_in():
    with ScriptedChatModel(BATCH, "Opened.") as model:
        agent = RagAgent(model=model, knowledge=CannedKnowledge())
        waiting = agent.ask("Open it.", context=CONTEXT)
        assert waiting.outcome["ending"] == "client_tools"
        assert waiting.text == "Waiting for the client's tools: open_panel, open_panel."
        assert [call["id"] for call in waiting.pending] == ["p1", "p2"]
        answer = agent.resume({"p1": "ok", "p2": "ok"}, thread=waiting.thread, context=CONTEXT)
    assert (answer.text, answer.outcome["ending"], answer.pending) == ("Opened.", "answered", ())
    assert answer.outcome["calls"]["run"] == 3


def test_the_stream_ends_with_the_calls():
    with ScriptedChatModel(BATCH) as model:
        events = list(RagAgent(model=model, knowledge=CannedKnowledge()).stream("Open it.", context=CONTEXT))
    assert isinstance(events[-1], ClientToolsRequested)
    assert [call["args"]["tab"] for call in events[-1].calls] == ["one", "two"]


def test_a_tool_may_be_the_clients_from_the_start():
    @tool
    def open_panel(tab: str) -> str:
        """Open."""
        raise AssertionError("it runs at the client")

    open_panel.metadata = {"runtime": "client"}
    with ScriptedChatModel(BATCH) as model:
        graph = build_rag_graph(
            model=model, knowledge=CannedKnowledge(), tools=[open_panel], checkpointer=InMemorySaver()
        )
        out = graph.invoke(ASK, THREAD)
    assert len(out["__interrupt__"][0].value["client_tools"]) == 2


def test_the_time_that_the_client_takes_is_not_the_turns():
    import time

    with ScriptedChatModel([BATCH[1]], call("knowledge_search", query="b"), "Done.") as model:
        graph = build_rag_graph(model=model, knowledge=CannedKnowledge(), checkpointer=InMemorySaver())
        context = {**CONTEXT, "max_seconds": 0.5}
        graph.invoke(ASK, THREAD, context=context)
        time.sleep(0.6)
        out = graph.invoke(Command(resume={"results": {"p1": "ok"}}), THREAD, context=context)
    assert (out["outcome"]["ending"], out["messages"][-1].text) == ("answered", "Done.")


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ({"name": "knowledge_search", "parameters": {"type": "object"}}, "is a tool of the server"),
        ({"description": "no name"}, "it needs a name"),
        ({"name": "x", "parameters": {"type": "array"}}, "parameters of type object"),
    ],
)
def test_a_bad_schema_is_refused_before_anything_is_spent(schema: dict[str, Any], told: str):
    with pytest.raises(SettingsError, match=told):
        RagAgent(model=ScriptedChatModel(), knowledge=CannedKnowledge()).ask("q", context={"client_tools": [schema]})
