"""Whatever models, tools and callers do, each prompt is one that a provider accepts and each turn has its answer."""

import asyncio
import itertools
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage
from langchain_core.messages.tool import invalid_tool_call, tool_call
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from graphrag_agent import Budget, build_rag_graph
from graphrag_agent.errors import ToolFailedError
from graphrag_agent.testing import ScriptedChatModel, call
from tests.canned import CannedKnowledge
from tests.pairing_rule import pairing_problems

THREAD: Any = {"configurable": {"thread_id": "t"}}
PANEL = {"name": "open_panel", "parameters": {"type": "object", "properties": {"query": {}}}}


class KilledError(BaseException):
    """Not an Exception, like a kill: nothing in the loop may catch it."""


class MoodyKnowledge(CannedKnowledge):
    """The query says what happens."""

    async def asearch(self, query: str, **more: Any) -> Any:
        if query == "kill":
            raise KilledError
        if query == "fail":
            raise ToolFailedError("down", retryable=True)
        if query == "nothing":
            return await CannedKnowledge(lambda _: []).asearch(query, **more)
        return await super().asearch(query, **more)


ids = st.sampled_from(["a", "b", "c", "", None])
queries = st.sampled_from(["one", "two", "fail", "nothing", "kill"])
calls = st.one_of(
    st.builds(lambda q, i: tool_call(name="knowledge_search", args={"query": q}, id=i), queries, ids),
    st.builds(lambda i: tool_call(name="nope", args={}, id=i), ids),
    st.builds(lambda i: tool_call(name="open_panel", args={"query": 1}, id=i), ids),
    st.builds(lambda i: tool_call(name="knowledge_search", args={"tenant": "x"}, id=i), ids),
)
broken_calls = st.builds(
    lambda text, i: invalid_tool_call(name="knowledge_search", args=text, id=i, error=None),
    st.sampled_from(['{"query": "a', "", "null", "[]", "7"]),
    ids,
)
replies = st.one_of(
    st.sampled_from(["An answer.", "", " "]).map(AIMessage),
    st.builds(
        lambda text, good, bad: AIMessage(text, tool_calls=good, invalid_tool_calls=bad),
        st.sampled_from(["", "let me look"]),
        st.lists(calls, max_size=4),
        st.lists(broken_calls, max_size=2),
    ),
    st.sampled_from([ConnectionError("down"), ValueError("odd")]),
)
turns = st.lists(
    st.tuples(st.lists(replies, max_size=4), st.sampled_from(["ask", "resume", "drop", "ask"]), st.booleans()),
    min_size=1,
    max_size=4,
)


@pytest.mark.filterwarnings("ignore:coroutine")
@settings(max_examples=60, deadline=None)
@given(turns)
def test_any_turn_is_paired_and_answered(script: list[tuple[list[Any], str, bool]]):
    prompts: list[list[BaseMessage]] = []
    waiting: list[Any] = []

    def play(messages: list[BaseMessage], tools: tuple[str, ...]) -> Any:
        prompts.append(messages)
        return waiting.pop(0) if waiting and tools else "The end."

    model = ScriptedChatModel(*[play] * 200)
    graph = build_rag_graph(
        model=model, knowledge=MoodyKnowledge(), budget=Budget(max_rounds=4), checkpointer=InMemorySaver()
    )
    for number, (said, how, serial) in enumerate(script):
        waiting[:] = said
        context = {"client_tools": [PANEL], "parallel_tool_calls": not serial}
        _turn(graph, number, how, context)
    for prompt in prompts:
        assert pairing_problems(prompt) == []
        kinds = [message.type for message in prompt if message.type in ("human", "ai")]
        assert ("human", "human") not in itertools.pairwise(kinds)
    messages = graph.get_state(THREAD).values["messages"]
    assert {message.type for message in messages} <= {"human", "ai"}


def _turn(graph: Any, number: int, how: str, context: Any) -> None:
    """Ask, and see it through; a killed turn is sometimes resumed, a waiting client sometimes answers."""
    try:
        out = graph.invoke({"messages": [HumanMessage(f"question {number}")]}, THREAD, context=context)
        while "__interrupt__" in out:
            if how == "drop":
                return
            calls = out["__interrupt__"][0].value["client_tools"]
            results = {"results": {call["id"]: {"ok": True} for call in calls[1:]}}
            out = graph.invoke(Command(resume=results), THREAD, context=context)
    except KilledError:
        return
    assert out["messages"][-1].type == "ai"
    assert out["messages"][-1].text.strip()
    assert out["outcome"]["ending"] in (
        "answered",
        "max_rounds",
        "max_calls",
        "max_seconds",
        "no_new_evidence",
        "refused",
        "model_error",
    )


@pytest.mark.parametrize("cut", range(1, 7))
def test_a_history_may_be_cut_anywhere(cut: int):
    seen: list[list[BaseMessage]] = []

    def play(messages: list[BaseMessage], tools: tuple[str, ...]) -> Any:
        seen.append(messages)
        return "An answer."

    graph = build_rag_graph(
        model=ScriptedChatModel(*[play] * 4), knowledge=CannedKnowledge(), checkpointer=InMemorySaver()
    )
    for number in range(3):
        graph.invoke({"messages": [HumanMessage(f"q{number}")]}, THREAD)
    messages = graph.get_state(THREAD).values["messages"]
    gone = [RemoveMessage(id=message.id) for message in messages[:cut]]
    graph.update_state(THREAD, {"messages": gone}, as_node="commit_answer")
    out = graph.invoke({"messages": [HumanMessage("next")]}, THREAD)
    assert pairing_problems(seen[-1]) == []
    assert [m.text for m in out["messages"]] == [m.text for m in messages[cut:]] + ["next", "An answer."]


async def test_cancelled_in_the_middle_of_three_tools_and_asked_anew():
    class Slow(CannedKnowledge):
        async def asearch(self, query: str, **more: Any) -> Any:
            await asyncio.sleep(0 if query == "quick" else 30)
            return await super().asearch(query, **more)

    batch = [call("knowledge_search", query=q) for q in ("quick", "slow", "slower")]
    model = ScriptedChatModel(batch, "fresh")
    graph = build_rag_graph(model=model, knowledge=Slow(), checkpointer=InMemorySaver())
    run = asyncio.create_task(graph.ainvoke({"messages": [HumanMessage("first")]}, THREAD))
    await asyncio.sleep(0.1)
    run.cancel()
    await asyncio.wait([run])
    out = await graph.ainvoke({"messages": [HumanMessage("second")]}, THREAD)
    assert [message.text for message in out["messages"]] == ["first", "second", "fresh"]
    assert pairing_problems(model.requests[1].messages) == []
    assert all(message.type != "tool" for message in model.requests[1].messages)


def test_arguments_mended_as_text_are_taken_as_the_call():
    knowledge = CannedKnowledge()
    fixed = "```json\n" + json.dumps({"query": "sick leave", "top_k": 3}) + "\n```"
    with ScriptedChatModel(call("knowledge_search", query="sick leave", top_k=99), fixed, "Ten days.") as model:
        out = build_rag_graph(model=model, knowledge=knowledge).invoke({"messages": [HumanMessage("q")]})
    assert knowledge.queries == ["sick leave"]
    assert out["messages"][-1].text == "Ten days."


def test_json_as_an_answer_is_an_answer_where_no_call_failed():
    knowledge = CannedKnowledge()
    with ScriptedChatModel('{"query": "sick leave"}') as model:
        out = build_rag_graph(model=model, knowledge=knowledge).invoke({"messages": [HumanMessage("give me json")]})
    assert (knowledge.queries, out["messages"][-1].text) == ([], '{"query": "sick leave"}')
