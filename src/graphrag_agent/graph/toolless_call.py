"""A call of the chat model that offers it no tools, though the turn has calls in it."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from typing import cast

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import RunnableConfig

from graphrag_agent.graph.loop import Loop, Protocol
from graphrag_agent.graph.policy.pairing import calls_of
from graphrag_agent.tools.registry import ToolRegistry

logger = logging.getLogger(__name__)

_OF_TOOLS = re.compile("tool", re.IGNORECASE)


async def call_without_tools(
    loop: Loop, prompt: Sequence[BaseMessage], protocol: Protocol, config: RunnableConfig
) -> AIMessage:
    """The model's message.

    Some providers refuse calls and results in a history when the request has no tools (Bedrock: "The toolConfig field
    must be defined when using toolUse and toolResult content blocks"; Anthropic: "must define tools"). They get both as
    text, from the first refusal on at once.
    """
    has_calls = any(map(calls_of, prompt))
    if protocol == "native" and has_calls and loop.needs_tools_for_calls:
        protocol = "text"
    try:
        return cast(AIMessage, await loop.bound_to(ToolRegistry(), protocol).ainvoke(prompt, config))
    except Exception as error:
        if protocol != "native" or not has_calls or not _is_about_tools(error):
            raise
        logger.info("the provider takes no calls without tools (%s); it gets them as text", type(error).__name__)
    message = cast(AIMessage, await loop.bound_to(ToolRegistry(), "text").ainvoke(prompt, config))
    loop.remember_that_calls_need_tools()
    return message


def _is_about_tools(error: Exception) -> bool:
    return _OF_TOOLS.search(f"{error} {getattr(error, 'body', '')}") is not None
