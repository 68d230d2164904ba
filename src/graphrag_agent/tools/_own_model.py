"""A chat model that a tool asks by itself: without tools, without the conversation, out of the answer's stream."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace

from langgraph.errors import GraphBubbleUp

from graphrag_agent.errors import GraphragError, ToolFailedError
from graphrag_agent.models.asking import AskedModel, GivenModel, Reply, in_tag
from graphrag_agent.models.extractive import ExtractiveChatModel
from graphrag_agent.prompt_files import PromptFiles
from graphrag_agent.retrieval.evidence_tags import without_tags

logger = logging.getLogger(__name__)

MAX_REPLY_CHARACTERS = 8_000
"""Of a reply, more is not shown."""

_render = PromptFiles("graphrag_agent.tools.prompts").render


class PromptedModel:
    """Asks one model with one prompt file; `tool` is the name of both the file and the tool."""

    def __init__(self, model: GivenModel, tool: str, **values: str) -> None:
        self._asked = AskedModel.of(model)
        self._tool = tool
        self._instructions = _render(tool, **values)

    async def ask(self, given: Mapping[str, str]) -> Reply:
        """The reply to what is given, each part in a tag of its name, with nothing in it that looks like evidence.

        Raises ToolFailedError where there is none.
        """
        if isinstance(await self._asked.model(), ExtractiveChatModel):
            raise ToolFailedError(f"{self._tool} needs a chat model, and this graph runs offline; go on without it")
        told = "\n\n".join(in_tag(name, text) for name, text in given.items() if text.strip())
        reply = await self._reply(told)
        if not reply.text:
            raise ToolFailedError(f"{self._tool}: the model gave no text; go on without it")
        cut = f"…\n(cut after {MAX_REPLY_CHARACTERS} characters)" if reply.left_out else ""
        return replace(reply, text=without_tags(reply.text) + cut)

    async def _reply(self, told: str) -> Reply:
        try:
            return await self._asked.ask(self._instructions, told, name=self._tool, max_characters=MAX_REPLY_CHARACTERS)
        except (GraphBubbleUp, GraphragError):
            raise
        except Exception as error:
            # its text may hold a key or an address, which the turn's model could repeat, so it is only logged
            logger.warning("the model of %s failed: %s: %s", self._tool, type(error).__name__, error)
            raise ToolFailedError(
                f"{self._tool}: the model failed ({type(error).__name__}); go on without it",
                retryable=isinstance(error, ConnectionError | TimeoutError),
            ) from error
