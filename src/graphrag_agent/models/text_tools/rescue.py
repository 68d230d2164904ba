"""Calls as text from a model that has native ones, and words for a reader without markup."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, message_chunk_to_message
from langchain_core.messages.tool import invalid_tool_call, tool_call

from graphrag_agent.models.text_tools.dialects import READERS, STRAY
from graphrag_agent.models.text_tools.items import Call, Item, Malformed, Text
from graphrag_agent.models.text_tools.parsing import ToolCallParser, parse_text
from graphrag_agent.models.text_tools.quoted_calls import without_quotes
from graphrag_agent.models.text_tools.reply import MAX_RAW_CHARACTERS, UNREADABLE
from graphrag_agent.models.thoughts import with_thoughts_aside

_MARKER = re.compile("|".join(map(re.escape, (*READERS, *STRAY))))


class MarkupFilter:
    """Cleans one message's text for its reader, piece by piece: calls and their remains are left out."""

    def __init__(self, tool_names: Collection[str] = ()) -> None:
        self._parser = ToolCallParser(tool_names)

    def feed(self, piece: str) -> str:
        """What of the text so far may be shown now."""
        return _text_of(self._parser.feed(piece))

    def close(self) -> str:
        """What was kept back and turned out to be text."""
        return _text_of(self._parser.close())


def rescue_tool_calls(message: AIMessage, tool_names: Collection[str], given: Iterable[BaseMessage] = ()) -> AIMessage:
    """The message with the calls from its text as tool calls, unreadable ones as invalid, and the text without them.

    What the text thinks aloud stands aside; a call that is only thought of is none. The same message where its text has
    no markup. Native calls stand: then the text is only cleaned. `given`: what the model was asked with; a call that
    stands there is a quote, and only left out.
    """
    message = with_thoughts_aside(message)
    if not may_have_calls(message.text, tool_names):
        return message
    content: list[Any] = [message.content] if isinstance(message.content, str) else message.content
    cleaned, found = list[Any](), list[Item]()
    for block in content:
        text = block if isinstance(block, str) else block.get("text") if block.get("type") == "text" else None
        items = parse_text(text, tool_names) if text else []
        found += items
        if not text:
            cleaned.append(block)
        elif rest := _text_of(items):
            cleaned.append(rest if isinstance(block, str) else {**block, "text": rest})
    plain = "".join(cleaned) if isinstance(message.content, str) else cleaned
    return message if plain == message.content else _rebuilt(message, plain, without_quotes(found, given))


def may_have_calls(text: str, tool_names: Collection[str]) -> bool:
    """Whether a closer look is worth it: the text has a marker, or is JSON that names a tool."""
    is_json = text.lstrip()[:1] in {"{", "["} and any(name in text for name in tool_names)
    return is_json or _MARKER.search(text) is not None


def _rebuilt(message: AIMessage, content: Any, found: Sequence[Item]) -> AIMessage:
    if isinstance(message, AIMessageChunk):
        message = message_chunk_to_message(message)  # type: ignore[assignment]
    if message.tool_calls or message.invalid_tool_calls:
        return message.model_copy(update={"content": content})
    calls = [
        tool_call(name=item.name, args=json.loads(item.arguments), id=_new_id())
        for item in found
        if isinstance(item, Call)
    ]
    broken = [
        invalid_tool_call(
            name=UNREADABLE, args=f"{item.reason}: {item.raw[:MAX_RAW_CHARACTERS]}", id=_new_id(), error=item.reason
        )
        for item in found
        if isinstance(item, Malformed)
    ]
    return message.model_copy(update={"content": content, "tool_calls": calls, "invalid_tool_calls": broken})


def _text_of(items: Sequence[Item]) -> str:
    return "".join(item.text for item in items if isinstance(item, Text))


def _new_id() -> str:
    return f"call_{uuid.uuid4().hex[:12]}"
