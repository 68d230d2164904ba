"""Calls that a model only quotes from what it was given."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage

from graphrag_agent.call_markup import is_quoted
from graphrag_agent.models.text_tools.items import Item, Text


def without_quotes(items: Sequence[Item], given: Iterable[BaseMessage]) -> list[Item]:
    """What was found in a reply, less the calls that stand in a user's message or a tool's result."""
    if all(isinstance(item, Text) for item in items):
        return list(items)
    texts = [message.text for message in given if isinstance(message, HumanMessage | ToolMessage)]
    return [item for item in items if isinstance(item, Text) or not is_quoted(item.raw, texts)]
