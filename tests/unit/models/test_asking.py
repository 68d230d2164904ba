"""What a model that is asked by the way is told, and what is taken of its reply."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest
from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langgraph.constants import TAG_NOSTREAM

from graphrag_agent.models.asking import AskedModel, Reply, in_tag, reply_usage
from graphrag_agent.testing import ScriptedChatModel


class Spy(AsyncCallbackHandler):
    def __init__(self) -> None:
        self.seen: list[tuple[Any, Any]] = []

    async def on_chat_model_start(self, *_: Any, tags: list[str] | None = None, **told: Any) -> None:
        self.seen.append((told.get("name"), tags))


async def test_it_sees_instructions_and_one_message_and_no_tools() -> None:
    with ScriptedChatModel("Rain.") as model:
        reply = await AskedModel(model).ask("Be short.", "<text>\n…\n</text>", name="weather", max_characters=100)
    (request,) = model.requests
    assert [(message.type, message.text) for message in request.messages] == [
        ("system", "Be short."),
        ("human", "<text>\n…\n</text>"),
    ]
    assert (request.tools, reply.text, reply.left_out) == ((), "Rain.", 0)


async def test_its_run_has_a_name_and_stays_out_of_the_stream() -> None:
    with ScriptedChatModel("Rain.") as model:
        spy = Spy()
        model.callbacks = [spy]
        await AskedModel(model).ask("", "?", name="weather", max_characters=100)
    assert spy.seen == [("weather", [TAG_NOSTREAM])]


@pytest.mark.parametrize(
    ("said", "reply"),
    [
        (f"<think>{'hm ' * 100}</think> Rain.", ("Rain.", 0)),
        ("<think>it broke off", ("", 0)),
        ("Rain and snow.", ("Rain ", 9)),
    ],
    ids=["long-thoughts", "only-thoughts", "too-long"],
)
async def test_thoughts_go_before_the_reply_is_cut(said: str, reply: tuple[str, int]) -> None:
    with ScriptedChatModel(said) as model:
        found = await AskedModel(model).ask("", "?", name="n", max_characters=5)
    assert (found.text, found.left_out) == reply


async def test_what_it_cost_is_told_and_zero_where_that_is_unknown() -> None:
    message = AIMessage("So.", usage_metadata={"input_tokens": 7, "output_tokens": 3, "total_tokens": 10})
    with ScriptedChatModel(message) as model:
        found = await AskedModel(model).ask("", "?", name="n", max_characters=5)
    assert found == Reply("So.", 0, {"input_tokens": 7, "output_tokens": 3})
    assert reply_usage(AIMessage("So.")) == {"input_tokens": 0, "output_tokens": 0}


async def test_it_is_loaded_once_by_all_who_ask_at_once_and_off_the_event_loop() -> None:
    threads: list[threading.Thread] = []

    def load() -> BaseChatModel:
        threads.append(threading.current_thread())
        time.sleep(0.02)
        return ScriptedChatModel("One.", "Two.", "Three.")

    asked = AskedModel.of(load)
    assert AskedModel.of(asked) is asked and not threads
    replies = await asyncio.gather(*(asked.ask("", "?", name="n", max_characters=99) for _ in range(3)))
    assert {reply.text for reply in replies} == {"One.", "Two.", "Three."}
    assert len(threads) == 1 and threads[0] is not threading.main_thread()


async def test_a_model_that_could_not_be_loaded_is_loaded_again() -> None:
    given = iter([ImportError("no provider"), ScriptedChatModel("One.")])

    def load() -> BaseChatModel:
        if isinstance(found := next(given), Exception):
            raise found
        return found

    asked = AskedModel(load)
    with pytest.raises(ImportError, match="no provider"):
        await asked.ask("", "?", name="n", max_characters=99)
    assert (await asked.ask("", "?", name="n", max_characters=99)).text == "One."


def test_a_text_neither_closes_its_tag_nor_opens_another() -> None:
    assert in_tag("text", "</TEXT> <text> a < b") == "<text>\n‹/TEXT> ‹text> a ‹ b\n</text>"
