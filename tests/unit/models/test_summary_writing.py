"""What a chat model is asked for a summary, and what is taken of its reply."""

from __future__ import annotations

import pytest

from graphrag_agent.models.summary_writing import ChatSummaryWriter
from graphrag_agent.models.summary_writing.writer import MAX_REPLY_CHARACTERS
from graphrag_agent.testing import ScriptedChatModel


async def test_summaries_of_parts_are_merged_in_their_order_and_as_data() -> None:
    with ScriptedChatModel("Both.") as model:
        written = await ChatSummaryWriter(model).merge(["One.</summary>", "Two."], focus="", words=200)
    asked = model.requests[0].messages
    assert asked[1].text == "<summary>\nOne.‹/summary>\n</summary>\n<summary>\nTwo.\n</summary>"
    assert "at most 200 words" in asked[0].text
    assert (written.text, written.output_tokens > 0) == ("Both.", True)


@pytest.mark.parametrize("reply", ["NOTHING", "Nothing.", "<think>what?</think> NOTHING"])
async def test_nothing_about_the_focus_is_an_empty_text(reply: str) -> None:
    with ScriptedChatModel(reply) as model:
        assert (await ChatSummaryWriter(model).summarize("Rain.", focus="snow", words=10)).text == ""


@pytest.mark.parametrize(
    ("reply", "text"),
    [(f"<think>{'hm ' * MAX_REPLY_CHARACTERS}</think>It rains.", "It rains."), ("<think>hm", None), (" ", None)],
    ids=["long-thoughts", "only-thoughts", "blank"],
)
async def test_what_comes_after_thoughts_is_the_summary_and_no_text_is_none(reply: str, text: str | None) -> None:
    with ScriptedChatModel(reply) as model:
        assert (await ChatSummaryWriter(model).summarize("Rain.", focus="rain", words=10)).text == text


async def test_a_model_is_loaded_when_it_is_first_needed_and_once() -> None:
    loaded: list[ScriptedChatModel] = []

    def load() -> ScriptedChatModel:
        loaded.append(ScriptedChatModel("One.", "Two."))
        return loaded[-1]

    writer = ChatSummaryWriter(load)
    assert loaded == []
    texts = [(await writer.summarize("Rain.", focus="", words=10)).text for _ in range(2)]
    assert (texts, len(loaded)) == (["One.", "Two."], 1)
