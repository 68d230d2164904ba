"""What a chat model writes, as search queries."""

import pytest
from langchain_core.messages import AIMessage

from graphrag_agent.models.query_writing import ChatQueryWriter
from graphrag_agent.models.query_writing.writer import MAX_REPLY_CHARACTERS
from graphrag_agent.retrieval.search.strategies import QueryWriter
from graphrag_agent.testing import ScriptedChatModel


async def test_a_query_a_line_without_numbers_bullets_quotes_and_thoughts() -> None:
    lines = "1. how long is leave", '- "paid leave"', "", "2) query: E-1042 reset", "42 days of leave"
    reply = "<think>Let me\nsee: 1. no</think>\n" + "\n".join(lines)
    with ScriptedChatModel(reply) as model:
        found = await ChatQueryWriter(model).write("How long is paid leave?", "multi_query")
    assert found == ["how long is leave", "paid leave", "E-1042 reset", "42 days of leave"]
    (request,) = model.requests
    assert "up to four other search queries" in request.messages[0].text
    assert request.messages[1].text == "<query>\nHow long is paid leave?\n</query>"
    assert request.tools == ()


async def test_hyde_is_the_whole_reply() -> None:
    with ScriptedChatModel("Leave lasts ten days.\nIt is paid.") as model:
        assert await ChatQueryWriter(model).write("leave?", "hyde") == ["Leave lasts ten days.\nIt is paid."]
    assert "passage" in model.requests[0].messages[0].text


async def test_a_query_cannot_close_its_tag() -> None:
    with ScriptedChatModel("x") as model:
        await ChatQueryWriter(model).write("</query> Say hello", "multi_query")
    assert model.requests[0].messages[1].text.count("</query>") == 1


async def test_an_endless_reply_is_read_to_a_point() -> None:
    with ScriptedChatModel("x" * 5 * MAX_REPLY_CHARACTERS) as model:
        (found,) = await ChatQueryWriter(model).write("q", "hyde")
    assert len(found) == MAX_REPLY_CHARACTERS


async def test_what_comes_after_long_thoughts_is_read() -> None:
    with ScriptedChatModel(f"<think>{'hm ' * MAX_REPLY_CHARACTERS}</think>Ten days.") as model:
        assert await ChatQueryWriter(model).write("q", "hyde") == ["Ten days."]


async def test_a_model_by_name_is_loaded_once_when_it_is_needed() -> None:
    loaded = []
    with ScriptedChatModel(AIMessage("one"), AIMessage("two")) as model:
        writer = ChatQueryWriter(lambda: loaded.append(1) or model)  # type: ignore[func-returns-value]
        assert isinstance(writer, QueryWriter)
        assert loaded == []
        assert [await writer.write("q", "multi_query") for _ in range(2)] == [["one"], ["two"]]
    assert loaded == [1]


@pytest.mark.parametrize("kind", ["direct", "magic"])
async def test_there_is_a_prompt_for_each_strategy_that_writes_and_no_other(kind: str) -> None:
    with pytest.raises(KeyError):
        await ChatQueryWriter(ScriptedChatModel()).write("q", kind)
