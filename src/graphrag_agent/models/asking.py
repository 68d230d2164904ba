"""A chat model that is asked by the way: without tools, without the conversation, out of the answer's stream."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, Union

from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.constants import TAG_NOSTREAM

from graphrag_agent.models.composed import ChatModel
from graphrag_agent.models.thoughts import without_thoughts

GivenModel: TypeAlias = Union["AskedModel", ChatModel, Callable[[], ChatModel]]
"""A model, or what loads it when it is first needed."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model wrote, and what it cost."""

    text: str
    """Without what it thought aloud, and no longer than was asked for."""
    left_out: int
    """Characters behind that."""
    usage: dict[str, int]


class AskedModel:
    """Asks one model; whoever shares this object shares the model, which is loaded once."""

    def __init__(self, model: ChatModel | Callable[[], ChatModel]) -> None:
        self._given = model
        self._loaded = model if isinstance(model, Runnable) else None
        self._loading = threading.Lock()

    @classmethod
    def of(cls, given: GivenModel) -> AskedModel:
        """The object itself where one is given."""
        return given if isinstance(given, AskedModel) else cls(given)

    async def ask(self, instructions: str, told: str, *, name: str, max_characters: int | None = None) -> Reply:
        """The reply to one message; `name` is that of the run in a trace."""
        model = await self.model()
        # LangGraph keeps the tokens of a run with this tag out of the graph's own stream
        config: RunnableConfig = {"tags": [TAG_NOSTREAM], "run_name": name}
        reply = await model.ainvoke([SystemMessage(instructions), HumanMessage(told)], config)
        text = without_thoughts(reply.text)
        shown = text[:max_characters]
        return Reply(shown, len(text) - len(shown), reply_usage(reply))

    async def model(self) -> ChatModel:
        """The model, loaded in a thread: it imports a provider's package, which takes seconds."""
        return self._loaded if self._loaded is not None else await asyncio.to_thread(self._load)

    def _load(self) -> ChatModel:
        with self._loading:
            if self._loaded is None:
                self._loaded = self._given if isinstance(self._given, Runnable) else self._given()
            return self._loaded


def in_tag(name: str, text: str) -> str:
    """The text as data in a tag of this name, which it can't close; nor can it open another."""
    return f"<{name}>\n{text.replace('<', '‹')}\n</{name}>"


def reply_usage(reply: AIMessage) -> dict[str, int]:
    """Tokens read and written; zeros where the provider doesn't tell."""
    used = reply.usage_metadata
    return {name: int(used[name]) if used else 0 for name in ("input_tokens", "output_tokens")}
