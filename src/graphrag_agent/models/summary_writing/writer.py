"""A chat model that sums up a part of a document, and several such summaries in one."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import NamedTuple

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.runnables import RunnableConfig

from graphrag_agent.models.thoughts import without_thoughts
from graphrag_agent.prompt_files import PromptFiles

MAX_REPLY_CHARACTERS = 20_000
"""Of a reply, more is not even read."""

_QUIET: RunnableConfig = {"tags": ["nostream"], "run_name": "summary_writer"}
"""LangGraph keeps the tokens of a run with this tag out of the graph's own stream."""
_render = PromptFiles(__package__).render
_TAG = re.compile(r"<(?=/?(?:focus|text|summary))", re.IGNORECASE)


class Written(NamedTuple):
    """What the model wrote, and what it cost as far as the provider tells."""

    text: str | None
    """Empty where it has nothing to say of the focus; None where no text came, as after thoughts without an end."""
    input_tokens: int
    output_tokens: int


class ChatSummaryWriter:
    """Asks a chat model, or one that is loaded when it is first needed."""

    def __init__(self, model: BaseChatModel | Callable[[], BaseChatModel]) -> None:
        self._given = model

    async def summarize(self, text: str, *, focus: str, words: int) -> Written:
        """The text in at most about so many words."""
        return await self._ask("part", f"<text>\n{_inside(text)}\n</text>", focus, words)

    async def merge(self, summaries: Sequence[str], *, focus: str, words: int) -> Written:
        """Summaries of parts that follow each other as one, in at most about so many words."""
        told = "\n".join(f"<summary>\n{_inside(text)}\n</summary>" for text in summaries)
        return await self._ask("merge", told, focus, words)

    async def _ask(self, prompt: str, told: str, focus: str, words: int) -> Written:
        wanted = f"<focus>\n{_inside(focus)}\n</focus>\n" if focus else ""
        messages = [SystemMessage(_render(prompt, words=str(words))), HumanMessage(wanted + told)]
        reply = await self._model.ainvoke(messages, _QUIET)
        text = without_thoughts(reply.text)[:MAX_REPLY_CHARACTERS]
        used = reply.usage_metadata or {"input_tokens": 0, "output_tokens": 0}
        is_nothing = text.strip(" .\"'`").casefold() == "nothing"
        return Written("" if is_nothing else text or None, used["input_tokens"], used["output_tokens"])

    @cached_property
    def _model(self) -> BaseChatModel:
        return self._given if isinstance(self._given, BaseChatModel) else self._given()


def _inside(text: str) -> str:
    """The text with none of the tags that it stands in."""
    return _TAG.sub("‹", text)
