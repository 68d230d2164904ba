"""Conversations as strict chat templates accept them."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from graphrag_agent.models.text_tools.items import Call
from graphrag_agent.models.text_tools.parsing import parse_text
from graphrag_agent.models.text_tools.prompting import render_call, render_instructions, rewrite_messages

BFCL = Path(__file__).parents[5] / "shared" / "data" / "toolcalls" / "bfcl"
IMAGE = {"type": "image_url", "image_url": {"url": "data:,"}}

messages = st.lists(
    st.sampled_from(
        [
            SystemMessage("Rules."),
            HumanMessage("Hi"),
            HumanMessage([{"type": "text", "text": "See"}, IMAGE]),
            AIMessage("Yes"),
            AIMessage(""),
            AIMessage("", tool_calls=[{"name": "x", "args": {}, "id": "c"}]),
            ToolMessage("found", tool_call_id="c", name="x"),
        ]
    ),
    max_size=8,
)


@given(messages)
@settings(max_examples=100)
def test_turns_alternate_and_none_is_empty(history):
    system, *turns = rewrite_messages(history, "Use tools.")
    assert system.text.endswith("Use tools.")
    assert [turn.type for turn in turns] == (["human", "ai"] * len(turns))[: len(turns)]
    assert all(turn.content and not getattr(turn, "tool_calls", None) for turn in turns)
    said = [message.text for message in history if message.type in {"human", "tool"}]
    assert all(text in "".join(turn.text for turn in turns) for text in said)


def test_images_survive_a_merge():
    [turn] = rewrite_messages([HumanMessage("a"), HumanMessage([{"type": "text", "text": "b"}, IMAGE])], "")
    assert turn.content == ["a", {"type": "text", "text": "b"}, IMAGE]


def test_what_we_show_a_model_as_a_call_is_read_as_that_call():
    arguments = {"query": 'so-called "leave" </tool_call>\n病假', "n": [1, None]}
    [call] = parse_text(render_call("x", arguments))
    assert (call.name, json.loads(call.arguments)) == ("x", arguments)


def test_nothing_is_said_about_tools_where_there_are_none():
    assert render_instructions([], None, is_parallel=True) == ""


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        ("any", "you must call a tool."),
        ("required", "you must call a tool."),
        (True, "you must call a tool."),
        ("search", "you must call the tool search."),
        ({"type": "function", "function": {"name": "search"}}, "you must call the tool search."),
    ],
)
def test_a_forced_tool_is_named(choice, said):
    tools = [{"type": "function", "function": {"name": "search", "description": "It costs $5.", "parameters": {}}}]
    text = render_instructions(tools, choice, is_parallel=True)
    assert said in text
    assert "It costs $5." in text
    assert said not in render_instructions(tools, "auto", is_parallel=True)


def test_schemas_lose_their_titles_and_nothing_else():
    schema = {
        "title": "Args",
        "type": "object",
        "properties": {"title": {"title": "Title", "type": "string"}},
        "required": ["title"],
    }
    tools = [{"type": "function", "function": {"name": "x", "description": "", "parameters": schema}}]
    shown = render_instructions(tools, None, is_parallel=True).rpartition("Arguments: ")[2]
    assert json.loads(shown) == {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}


def test_calls_for_real_schemas_round_trip():
    path = BFCL / "parallel.jsonl"
    if not path.exists():
        pytest.skip("bfcl is not here")
    for line in path.read_text().split("\n")[:50]:
        truth = json.loads(line)["ground_truth"]
        made = [(name, {key: value[0] for key, value in args.items()}) for each in truth for name, args in each.items()]
        items = parse_text("\n".join(render_call(*each) for each in made))
        assert [(item.name, json.loads(item.arguments)) for item in items if isinstance(item, Call)] == made
