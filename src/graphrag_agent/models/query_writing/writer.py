"""A chat model as the query writer of a knowledge base (its port: `retrieval.search.strategies.QueryWriter`)."""

from __future__ import annotations

import re

from graphrag_agent.models.asking import AskedModel, GivenModel, in_tag
from graphrag_agent.prompt_files import PromptFiles

MAX_REPLY_CHARACTERS = 8_000
"""Of a reply, more is not even read."""

_render = PromptFiles(__package__).render
_MARKER = re.compile(r"^\s*(?:(?:[-*•–]|\d{1,2}[.)、:]|(?:query|q)\s*\d*\s*:)\s+)+", re.IGNORECASE)
_QUOTES = "\"'“”«»「」`"


class ChatQueryWriter:
    """Asks a chat model, or one that is loaded when it is first needed."""

    def __init__(self, model: GivenModel) -> None:
        self._asked = AskedModel.of(model)

    async def write(self, query: str, kind: str) -> list[str]:
        """For multi_query a query a line of the reply, for hyde the reply as one passage."""
        told = in_tag("query", query)
        reply = await self._asked.ask(_render(kind), told, name="query_writer", max_characters=MAX_REPLY_CHARACTERS)
        if kind == "hyde":
            return [reply.text]
        return [_MARKER.sub("", line).strip().strip(_QUOTES) for line in reply.text.splitlines() if line.strip()]
