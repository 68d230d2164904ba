"""A chat model that sums up a part of a document, and several such summaries in one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from graphrag_agent.models.asking import AskedModel, GivenModel, in_tag
from graphrag_agent.prompt_files import PromptFiles

MAX_REPLY_CHARACTERS = 20_000
"""Of a reply, more is not even read."""

_render = PromptFiles(__package__).render


class Written(NamedTuple):
    """What the model wrote, and what it cost as far as the provider tells."""

    text: str | None
    """Empty where it has nothing to say of the focus; None where no text came, as after thoughts without an end."""
    input_tokens: int
    output_tokens: int


class ChatSummaryWriter:
    """Asks a chat model, or one that is loaded when it is first needed."""

    def __init__(self, model: GivenModel) -> None:
        self._asked = AskedModel.of(model)

    async def summarize(self, text: str, *, focus: str, words: int) -> Written:
        """The text in at most about so many words."""
        return await self._ask("part", in_tag("text", text), focus, words)

    async def merge(self, summaries: Sequence[str], *, focus: str, words: int) -> Written:
        """Summaries of parts that follow each other as one, in at most about so many words."""
        told = "\n".join(in_tag("summary", text) for text in summaries)
        return await self._ask("merge", told, focus, words)

    async def _ask(self, prompt: str, told: str, focus: str, words: int) -> Written:
        asked = "\n".join([in_tag("focus", focus), told] if focus else [told])
        instructions = _render(prompt, words=str(words))
        reply = await self._asked.ask(instructions, asked, name="summary_writer", max_characters=MAX_REPLY_CHARACTERS)
        is_nothing = reply.text.strip(" .\"'`").casefold() == "nothing"
        return Written("" if is_nothing else reply.text or None, **reply.usage)
