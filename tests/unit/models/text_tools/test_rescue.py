"""Native models that answered with calls as text."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AIMessageChunk

from graphrag_agent.models.text_tools.rescue import MarkupFilter, may_have_calls, rescue_tool_calls

NAMES = ("knowledge_search",)
HERMES = '<tool_call>\n{"name": "knowledge_search", "arguments": {"query": "a"}}\n</tool_call>'


def test_calls_in_text_become_tool_calls():
    message = AIMessage(
        f"Let me look.\n{HERMES}", id="m1", usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
    )
    rescued = rescue_tool_calls(message, NAMES)
    assert [(made["name"], made["args"]) for made in rescued.tool_calls] == [("knowledge_search", {"query": "a"})]
    assert rescued.tool_calls[0]["id"].startswith("call_")
    assert (rescued.text, rescued.id, rescued.usage_metadata) == ("Let me look.", "m1", message.usage_metadata)
    assert message.tool_calls == []


@pytest.mark.parametrize(
    "content",
    [
        "Ten days.",
        '{"days": 10}',
        '{"name": "knowledge_search"}',
        f"```\n{HERMES}\n```",
        [{"type": "text", "text": "a < b"}],
    ],
)
def test_a_message_without_calls_is_the_same_object(content):
    message = AIMessage(content)
    assert rescue_tool_calls(message, NAMES) is message


def test_json_that_is_the_whole_message_is_a_call_to_an_offered_tool():
    message = AIMessage('{"name": "knowledge_search", "parameters": {"query": "a"}}')
    assert rescue_tool_calls(message, NAMES).tool_calls[0]["args"] == {"query": "a"}
    assert rescue_tool_calls(message, ("other",)) is message


def test_text_blocks_are_cleaned_and_others_kept():
    thought = {"type": "reasoning", "reasoning": "hm"}
    rescued = rescue_tool_calls(AIMessage([thought, {"type": "text", "text": f"So. {HERMES}"}]), NAMES)
    assert rescued.content == [thought, {"type": "text", "text": "So."}]
    assert len(rescued.tool_calls) == 1
    assert rescue_tool_calls(AIMessage([thought, {"type": "text", "text": HERMES}]), NAMES).content == [thought]


def test_an_unreadable_call_is_an_invalid_one():
    rescued = rescue_tool_calls(AIMessage('Wait. <tool_call>{"name": "knowledge_search", "argum'), NAMES)
    [broken] = rescued.invalid_tool_calls
    assert (rescued.text, rescued.tool_calls) == ("Wait.", [])
    assert (broken["name"], broken["error"]) == ("?", "the call is cut off")


def test_native_calls_are_not_doubled():
    native = [{"name": "knowledge_search", "args": {"query": "a"}, "id": "c1", "type": "tool_call"}]
    rescued = rescue_tool_calls(AIMessage(HERMES, tool_calls=native), NAMES)
    assert (rescued.text, rescued.tool_calls) == ("", native)


def test_a_merged_chunk_is_rescued_too():
    rescued = rescue_tool_calls(AIMessageChunk(content=HERMES, chunk_position="last"), NAMES)
    assert (type(rescued), len(rescued.tool_calls)) == (AIMessage, 1)


def test_a_reader_of_deltas_sees_no_markup():
    text = f"Let me look. {HERMES}\nNow <b>that</b> is 3 < 4."
    markup = MarkupFilter(NAMES)
    shown = [markup.feed(character) for character in text]
    assert "".join([*shown, markup.close()]) == "Let me look. \nNow <b>that</b> is 3 < 4."


@given(st.text(max_size=60))
@settings(max_examples=100)
def test_a_text_that_the_quick_look_passes_has_no_call(text):
    if not may_have_calls(text, NAMES):
        markup = MarkupFilter(NAMES)
        assert markup.feed(text) + markup.close() == text
