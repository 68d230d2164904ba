"""Tools that the client runs: handed out by one interrupt, beside the server's calls."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from graphrag_agent import RagAgent, build_rag_graph
from graphrag_agent.errors import SettingsError, ThreadError
from graphrag_agent.events import ClientToolsRequested
from graphrag_agent.models.text_tools.model import TextToolsModel
from graphrag_agent.testing import ScriptedChatModel, call
from tests.canned import CannedKnowledge
from tests.integration.test_threads import saver
from tests.pairing_rule import pairing_problems

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

    def invoke(model: Any, given: Any) -> Any:  # a new graph on a new connection, as after a restart
        checkpointer = saver(tmp_path / "t.sqlite")
        with closing(checkpointer.conn):
            graph = build_rag_graph(model=model, knowledge=knowledge, checkpointer=checkpointer)
            return graph.invoke(given, THREAD, context=CONTEXT, durability=durability)

    with ScriptedChatModel(BATCH) as model:
        out = invoke(model, ASK)
    (waiting,) = out["__interrupt__"]
    assert waiting.value == {
        "client_tools": [
            {"id": "p1", "name": "open_panel", "args": {"tab": "one"}},
            {"id": "p2", "name": "open_panel", "args": {"tab": "two"}},
        ]
    }
    assert model.requests[0].tools == ("knowledge_search", "open_panel")
    with ScriptedChatModel("Opened.") as model:
        done = invoke(model, Command(resume=value))
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
        (
            {"name": "x", "parameters": {"type": "object", "properties": {"tab": {"$ref": "#/$defs/tab"}}}},
            "can't be read as a JSON schema: KeyError: .*#/\\$defs/tab",
        ),
    ],
)
def test_a_bad_schema_is_refused_before_anything_is_spent(schema: dict[str, Any], told: str):
    with pytest.raises(SettingsError, match=told):
        RagAgent(model=ScriptedChatModel(), knowledge=CannedKnowledge()).ask("q", context={"client_tools": [schema]})


def test_results_for_a_thread_that_is_not_there_are_refused():
    model = ScriptedChatModel("made up")
    agent = RagAgent(model=model, knowledge=CannedKnowledge())
    with pytest.raises(ThreadError, match="'tpyo' is unknown"):
        agent.resume({"p1": "ok"}, thread="tpyo")
    assert model.requests == []
    assert agent.history("tpyo") == []


@pytest.mark.parametrize(
    "parameters",
    [
        {"properties": None, "additionalProperties": True},
        {"properties": [], "additionalProperties": True},
        {"properties": "tab", "additionalProperties": True},
        {"properties": {"tab": {"type": "string"}}, "required": None},
        {"properties": {"tab": {"type": "string"}}, "required": "tab"},
        {"properties": {"tab": True}, "required": ["tab", 1, {}]},
        {"properties": {"tab": None}, "required": True},
        {"properties": {"tab": "default"}},
    ],
    ids=str,
)
@pytest.mark.parametrize("protocol", ["native", "text"])
def test_an_odd_schema_is_read_for_what_it_says(parameters: dict[str, Any], protocol: str):
    written = '<tool_call>{"name": "open_panel", "arguments": {"tab": "one"}}</tool_call>'
    scripted = ScriptedChatModel(written if protocol == "text" else call("open_panel", tab="one"))
    model: Any = TextToolsModel(inner=scripted) if protocol == "text" else scripted
    tools = [{"name": "open_panel", "parameters": {"type": "object", **parameters}}]
    waiting = RagAgent(model=model).ask("Open it.", context={"client_tools": tools})
    assert [call["args"] for call in waiting.pending] == [{"tab": "one"}]
