"""Calls as models really send them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage
from langchain_core.messages.tool import invalid_tool_call, tool_call

from graphrag_agent.graph.policy.calls import MAX_ARGUMENT_CHARACTERS, tidy_calls
from graphrag_agent.graph.policy.pairing import calls_of

NAMES = ("knowledge_search", "kb.search")


def tidy(*calls: Any, turn: Any = ()) -> AIMessage:
    return tidy_calls(AIMessage("", tool_calls=list(calls)), turn, NAMES)


def made(name: str = "knowledge_search", id_: str | None = "1", **args: Any) -> Any:
    return tool_call(name=name, args=args, id=id_)


def test_sound_calls_stay_as_they_are():
    call = made(query="a")
    assert tidy(call).tool_calls == [call]


def test_ids_are_new_where_they_are_missing_repeated_or_used_before():
    turn = [AIMessage("", tool_calls=[made(id_="1")])]
    calls = tidy(made(id_="1"), made(id_=""), made(id_=None), made(id_="2"), made(id_="2"), turn=turn).tool_calls
    ids = [call["id"] for call in calls]
    assert ids[3] == "2"
    assert len({"1", *ids}) == 6
    assert all(ids)


@pytest.mark.parametrize(
    ("sent", "meant"),
    [
        ("functions.knowledge_search", "knowledge_search"),
        ("kb.search", "kb.search"),
        ("functions.nope", "functions.nope"),
        ("", "?"),
    ],
)
def test_a_prefix_is_dropped_where_only_that_makes_the_name_known(sent: str, meant: str):
    assert tidy(made(sent)).tool_calls[0]["name"] == meant


def test_a_wrapper_with_nonsense_inside_becomes_calls_that_are_refused():
    calls = tidy(made("multi_tool_use.parallel", tool_uses=["x", {"recipient_name": "a", "parameters": 7}])).tool_calls
    assert [(call["name"], call["args"]) for call in calls] == [("?", {}), ("a", 7)]


def test_huge_arguments_are_cut_and_say_so():
    long = invalid_tool_call(name="s", args="x" * 30_000, id="2", error=None)
    message = tidy_calls(AIMessage("", tool_calls=[made(query="y" * 30_000)], invalid_tool_calls=[long]), (), NAMES)
    assert message.tool_calls == []
    assert [len(str(call["args"])) < 300 for call in message.invalid_tool_calls] == [True, True]
    assert all(f"at most {MAX_ARGUMENT_CHARACTERS} are taken" in str(c["error"]) for c in message.invalid_tool_calls)


arguments = st.dictionaries(
    st.sampled_from(["query", "tool_uses"]), st.one_of(st.text(max_size=3), st.lists(st.text()))
)
sent = st.builds(made, st.sampled_from([*NAMES, "nope", "", "a.b"]), st.sampled_from(["1", "2", "", None]))


@given(st.lists(st.tuples(sent, arguments), max_size=6))
def test_every_call_ends_with_a_name_and_an_id_of_its_own(given_calls: list[Any]):
    message = tidy(*({**call, "args": args} for call, args in given_calls))
    ids = [call["id"] for call in calls_of(message)]
    assert len(set(ids)) == len(ids)
    assert all(ids)
    assert all(call["name"] for call in calls_of(message))


def test_arguments_in_a_wrapper_may_be_json_in_a_string():
    uses = [{"recipient_name": "functions.knowledge_search", "parameters": '{"query": "a"}'}]
    for inside in (uses, json.dumps(uses)):
        (opened,) = tidy(made("multi_tool_use.parallel", tool_uses=inside)).tool_calls
        assert (opened["name"], opened["args"]) == ("knowledge_search", {"query": "a"})
    (unread,) = tidy(made("wrapper", tool_uses=[{"name": "kb.search", "parameters": "a"}])).tool_calls
    assert unread["args"] == "a"


@pytest.mark.parametrize(
    ("block", "key"),
    [
        ({"type": "tool_use", "name": "knowledge_search", "input": {}}, "id"),
        ({"type": "tool_call", "name": "knowledge_search", "args": {}}, "id"),
        ({"type": "function_call", "id": "fc_1", "name": "knowledge_search", "arguments": "{}"}, "call_id"),
    ],
    ids=["Anthropic", "LangChain", "OpenAI"],
)
def test_calls_in_the_content_are_those_of_the_message(block: dict[str, Any], key: str):
    def content(*ids: str) -> list[Any]:
        return [{"type": "text", "text": "Let me look."}, *({**block, key: id_} for id_ in ids), "And then."]

    calls = [made(id_="1"), made(id_="2"), made(id_="2"), made(id_="3", query="x" * (MAX_ARGUMENT_CHARACTERS + 1))]
    turn = [AIMessage("", tool_calls=[made(id_="1")])]
    message = AIMessage(content("1", "2", "2", "3", "unknown"), tool_calls=calls)
    tidied = tidy_calls(message, turn, NAMES)
    assert tidied.content == content("2")
    assert len({call["id"] for call in calls_of(tidied)} - {"1"}) == 4
    assert message.content == content("1", "2", "2", "3", "unknown"), "the given one stays as it is"
