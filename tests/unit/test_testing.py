import asyncio

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool

from graphrag_agent.testing import ScriptedChatModel, UnexpectedModelCall, UnusedSteps, bad_call, call


@tool
def knowledge_search(query: str) -> str:
    """Search."""
    return query


def merged(chunks):
    whole = chunks[0]
    for chunk in chunks[1:]:
        whole += chunk
    return whole


def test_steps_are_played_in_order_and_requests_recorded():
    with ScriptedChatModel([call("knowledge_search", query="a"), call("knowledge_search", query="b")], "done") as model:
        bound = model.bind_tools([knowledge_search], parallel_tool_calls=False)
        first = bound.invoke("find a and b")
        second = model.invoke([HumanMessage("q"), first, ToolMessage("x", tool_call_id="call_1_1")])
    assert [(c["id"], c["args"]) for c in first.tool_calls] == [
        ("call_1_1", {"query": "a"}),
        ("call_1_2", {"query": "b"}),
    ]
    assert second.text == "done"
    assert [request.tools for request in model.requests] == [("knowledge_search",), ()]
    assert model.requests[0].options == {"parallel_tool_calls": False}
    assert model.requests[0].messages == [HumanMessage("find a and b")]


def test_a_call_beyond_the_script_is_remembered_where_the_caller_swallows_it():
    with pytest.raises(UnexpectedModelCall, match="2 model calls, but the script has 1"), ScriptedChatModel("a") as m:
        m.invoke("x")
        with pytest.raises(UnexpectedModelCall, match="last message: 'again'"):
            m.invoke("again")


def test_unused_steps_are_named():
    with (
        pytest.raises(UnusedSteps, match="1 of 2 steps were not used: 'second'"),
        ScriptedChatModel("a", "second") as m,
    ):
        m.invoke("x")


def test_a_failure_inside_is_not_masked_but_tells_of_unexpected_calls():
    with pytest.raises(ZeroDivisionError) as caught, ScriptedChatModel() as model:
        with pytest.raises(UnexpectedModelCall):
            model.invoke("x")
        raise ZeroDivisionError
    assert caught.value.__notes__ == ["1 model calls, but the script has 0 steps"]


def test_exceptions_are_raised_and_callables_see_messages_and_tools():
    def answer(messages, tools):
        return f"{messages[-1].text}|{','.join(tools)}"

    with ScriptedChatModel(TimeoutError("slow"), answer) as model:
        with pytest.raises(TimeoutError, match="slow"):
            model.invoke("x")
        assert model.bind_tools([knowledge_search]).invoke("hi").text == "hi|knowledge_search"


def test_streamed_calls_arrive_in_pieces_that_merge_to_the_whole():
    step = [call("knowledge_search", query="病假 and parental leave"), call("knowledge_search", query="b")]
    chunks = list(ScriptedChatModel(step).stream("q"))
    pieces = [piece for chunk in chunks for piece in chunk.tool_call_chunks]
    assert [(p["index"], p["name"], p["id"]) for p in pieces if p["name"]] == [
        (0, "knowledge_search", "call_1_1"),
        (1, "knowledge_search", "call_1_2"),
    ]
    assert all(len(piece["args"]) <= 6 for piece in pieces)
    assert merged(chunks).tool_calls == ScriptedChatModel(step).invoke("q").tool_calls
    assert [chunk.chunk_position for chunk in chunks][-1] == "last"


@pytest.mark.parametrize("content", ["Ten days.", [{"type": "text", "text": "Ten days."}]])
def test_what_a_message_says_aside_is_streamed_too(content: str | list[str | dict[str, str]]):
    step = AIMessage(content, additional_kwargs={"reasoning_content": "Let me think."})  # type: ignore[arg-type]
    for reply in (ScriptedChatModel(step).invoke("q"), merged(list(ScriptedChatModel(step).stream("q")))):
        assert (reply.text, reply.additional_kwargs) == ("Ten days.", {"reasoning_content": "Let me think."})


def test_bad_arguments_reach_the_caller_as_they_are():
    step = [bad_call("knowledge_search", "[1]"), call("knowledge_search", query="a")]
    for reply in (ScriptedChatModel(step).invoke("q"), merged(list(ScriptedChatModel(step).stream("q")))):
        assert [c["args"] for c in reply.invalid_tool_calls] == ["[1]"]
        assert [c["args"] for c in reply.tool_calls] == [{"query": "a"}]


def test_a_message_keeps_its_id_and_is_not_changed_by_playing():
    given = AIMessage("hello", id="m1", tool_calls=[call("knowledge_search", query="a")])
    played = ScriptedChatModel(given).invoke("q")
    assert (played.id, played.text, played.tool_calls[0]["id"]) == ("m1", "hello", "call_1_1")
    assert given.tool_calls[0]["id"] is None


async def test_parallel_async_calls_each_take_their_own_step():
    with ScriptedChatModel("a", "b", "c", chunk_delay_seconds=0.001) as model:

        async def read():
            return "".join([chunk.text async for chunk in model.astream("q")])

        assert sorted(await asyncio.gather(read(), read(), read())) == ["a", "b", "c"]
