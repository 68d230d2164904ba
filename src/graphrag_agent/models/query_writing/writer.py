"""A chat model as the query writer of a knowledge base (its port: `retrieval.search.strategies.QueryWriter`)."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.runnables import RunnableConfig
from langgraph.constants import TAG_NOSTREAM

from graphrag_agent.models.thoughts import without_thoughts
from graphrag_agent.prompt_files import PromptFiles

MAX_REPLY_CHARACTERS = 8_000
"""Of a reply, more is not even read."""

_QUIET: RunnableConfig = {"tags": [TAG_NOSTREAM], "run_name": "query_writer"}
"""LangGraph keeps the tokens of a run with this tag out of the graph's own stream."""
_render = PromptFiles(__package__).render
_MARKER = re.compile(r"^\s*(?:(?:[-*•–]|\d{1,2}[.)、:]|(?:query|q)\s*\d*\s*:)\s+)+", re.IGNORECASE)
_QUOTES = "\"'“”«»「」`"


class ChatQueryWriter:
    """Asks a chat model, or one that is loaded when it is first needed."""

    def __init__(self, model: BaseChatModel | Callable[[], BaseChatModel]) -> None:
        self._given = model

    async def write(self, query: str, kind: str) -> list[str]:
        """For multi_query a query a line of the reply, for hyde the reply as one passage."""
        asked = f"<query>\n{query.replace('<', '‹')}\n</query>"
        reply = await self._model.ainvoke([SystemMessage(_render(kind)), HumanMessage(asked)], _QUIET)
        text = without_thoughts(reply.text)[:MAX_REPLY_CHARACTERS]
        if kind == "hyde":
            return [text]
        return [_MARKER.sub("", line).strip().strip(_QUOTES) for line in text.splitlines() if line.strip()]

    @cached_property
    def _model(self) -> BaseChatModel:
        return self._given if isinstance(self._given, BaseChatModel) else self._given()
