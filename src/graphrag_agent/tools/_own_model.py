"""A chat model that a tool asks by itself: without tools, without the conversation, out of the answer's stream."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langgraph.constants import TAG_NOSTREAM

from graphrag_agent.errors import ToolFailedError
from graphrag_agent.models.extractive import ExtractiveChatModel
from graphrag_agent.models.thoughts import without_thoughts
from graphrag_agent.prompt_files import PromptFiles
from graphrag_agent.retrieval.evidence_tags import without_tags

MAX_REPLY_CHARACTERS = 8_000
"""Of a reply, more is not shown."""

OwnModel = BaseChatModel | Callable[[], BaseChatModel]
"""A model, or what loads it when it is first needed."""

_render = PromptFiles("graphrag_agent.tools.prompts").render


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model wrote, without what it thought aloud and without anything that looks like evidence."""

    text: str
    usage: dict[str, int]
    """Tokens read and written, where the provider tells; else zeros."""


class PromptedModel:
    """Asks one model with one prompt file; `tool` is the name of both the file and the tool."""

    def __init__(self, model: OwnModel, tool: str, **values: str) -> None:
        self._given = model
        self._tool = tool
        self._instructions = _render(tool, **values)
        self._loaded: BaseChatModel | None = model if isinstance(model, BaseChatModel) else None

    async def ask(self, given: Mapping[str, str]) -> Reply:
        """The reply to what is given, each part in a tag of its name. Raises ToolFailedError where there is none."""
        model = await self._model()
        if isinstance(model, ExtractiveChatModel):
            raise ToolFailedError(f"{self._tool} needs a chat model, and this graph runs offline; go on without it")
        parts = [f"<{name}>\n{text.replace('<', '‹')}\n</{name}>" for name, text in given.items() if text.strip()]
        said = [SystemMessage(self._instructions), HumanMessage("\n\n".join(parts))]
        reply = await model.ainvoke(said, {"tags": [TAG_NOSTREAM], "run_name": self._tool})
        text = without_tags(without_thoughts(reply.text))
        if not text:
            raise ToolFailedError(f"{self._tool}: the model gave no text; go on without it")
        if len(text) > MAX_REPLY_CHARACTERS:
            text = f"{text[:MAX_REPLY_CHARACTERS]}…\n(cut after {MAX_REPLY_CHARACTERS} characters)"
        return Reply(text, _usage(reply))

    async def _model(self) -> BaseChatModel:
        if self._loaded is None:
            # a loader imports a provider's package, which takes seconds
            self._loaded = await asyncio.to_thread(self._load)
        return self._loaded

    def _load(self) -> BaseChatModel:
        return self._given if isinstance(self._given, BaseChatModel) else self._given()


def _usage(reply: AIMessage) -> dict[str, int]:
    used = reply.usage_metadata
    return {name: int(used[name]) if used else 0 for name in ("input_tokens", "output_tokens")}
