"""Calls that run one after the other: in order, each once, also when the process dies between them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain_core.messages import ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from graphrag_agent import AgentContext, build_rag_graph
from graphrag_agent.testing import ScriptedChatModel, call
from graphrag_agent.token_estimate import estimate_tokens
from tests.integration.test_any_turn import KilledError

ASK = {"messages": [{"role": "user", "content": "Tell them all."}]}
THREAD: Any = {"configurable": {"thread_id": "t"}}
PANEL = {"name": "open_panel", "parameters": {"type": "object", "properties": {}}}


def results(model: ScriptedChatModel) -> list[ToolMessage]:
    """What the second round saw."""
    return [message for message in model.requests[1].messages if isinstance(message, ToolMessage)]


@pytest.mark.parametrize("parallel", [True, False])
def test_what_happened_does_not_happen_again_when_the_next_call_is_killed(parallel: bool):
    sent: list[str] = []

    @tool
    async def send(to: str) -> str:
        """Send."""
        sent.append(to)
        if to == "bob" and sent.count("bob") == 1:
            await asyncio.sleep(0.2)
            raise KilledError
        return f"sent to {to}"

    calls = [call("send", to=name) for name in ("ann", "bob", "cid")]
    with ScriptedChatModel(calls, "All sent.") as model:
        graph = build_rag_graph(model=model, tools=[send], checkpointer=InMemorySaver())
        with pytest.raises(KilledError):
            graph.invoke(ASK, THREAD, context=AgentContext(parallel_tool_calls=parallel), durability="sync")
        graph.invoke(None, THREAD, durability="sync")  # whoever resumes may have forgotten the option
    assert (sent.count("ann"), sent.count("bob"), sent.count("cid")) == (1, 2, 1)
    assert [message.text.partition("\n")[0] for message in results(model)] == [
        "sent to ann",
        "sent to bob",
        "sent to cid",
    ]


def test_they_run_in_order_before_the_clients_and_share_the_tokens_of_the_turn():
    ran: list[str] = []

    @tool
    def note(text: str) -> str:
        """Note."""
        ran.append(text)
        return "word " * 300

    calls = [call("note", text="a"), call("open_panel"), call("note", text="b"), call("note", text="c")]
    context = AgentContext(parallel_tool_calls=False, client_tools=(PANEL,), max_evidence_tokens=500)
    with ScriptedChatModel(calls, "Done.") as model:
        graph = build_rag_graph(model=model, tools=[note], checkpointer=InMemorySaver())
        out = graph.invoke(ASK, THREAD, context=context)
        assert ran == ["a", "b", "c"], "the client is asked when they have run"
        (asked,) = out["__interrupt__"][0].value["client_tools"]
        out = graph.invoke(Command(resume={"results": {asked["id"]: "open"}}), THREAD, context=context)
    assert (out["outcome"]["ending"], out["outcome"]["calls"]["run"]) == ("answered", 4)
    told = results(model)
    assert [message.name for message in told] == ["note", "open_panel", "note", "note"]
    assert told[1].text == "open"
    assert all("characters were left out" in message.text for message in told if message.name == "note")
    assert estimate_tokens("".join(message.text for message in told)) <= 500 + 200, "notes come on top"


def test_a_waiting_client_alone_is_asked_at_once():
    with ScriptedChatModel(call("open_panel"), "Done.") as model:
        graph = build_rag_graph(model=model, checkpointer=InMemorySaver())
        context = AgentContext(parallel_tool_calls=False, client_tools=(PANEL,))
        out = graph.invoke(ASK, THREAD, context=context)
        (asked,) = out["__interrupt__"][0].value["client_tools"]
        out = graph.invoke(Command(resume={"results": {asked["id"]: "open"}}), THREAD, context=context)
    assert out["messages"][-1].text == "Done."
