"""One answer of a model that writes its calls as text, turned into what a model with native calls would send."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage
from langchain_core.messages.ai import add_ai_message_chunks
from langchain_core.messages.tool import tool_call_chunk

from graphrag_agent.models.text_tools.items import Call, Item, Malformed, Text
from graphrag_agent.models.text_tools.parsing import ToolCallParser
from graphrag_agent.models.text_tools.prompting import render_repair
from graphrag_agent.models.text_tools.quoted_calls import without_quotes

UNREADABLE = "?"
"""Name of a call that can't be read."""

MAX_RAW_CHARACTERS = 500
"""Of unreadable markup, for whoever looks at the message; the model is told the reason."""

NATIVE_KEYS = ("tool_calls", "function_call")
"""In additional_kwargs: the provider's own form of native calls, which come as chunks too."""


class Reply:
    """Feed it the inner model's chunks, end it, and go on while it has a `prompt`.

    A call that can't be read is asked for once more, if the message has no other: with a valid call beside it the loop
    goes on anyway. What stays unreadable becomes an invalid tool call. As text alone, "Let me look." would pass for the
    answer; as an invalid call it is answered with an error, inside the loop's budget.
    """

    def __init__(self, prompt: list[BaseMessage], tool_names: Collection[str], *, repairs: int) -> None:
        """`tool_names`: without any, calls are dropped: no one could answer them."""
        self.prompt: list[BaseMessage] | None = prompt
        """What the inner model is sent next; None at the end."""
        self._names = tool_names
        self._repairs = repairs
        self._id: str | None = None
        self._call_count = 0
        self._native: dict[Any, int] = {}
        self._begin()

    def feed(self, chunk: AIMessage) -> Iterator[AIMessageChunk]:
        """What the reader and the loop get of this chunk, or whole message."""
        if self._id is None and chunk.id and not chunk.id.startswith("lc_"):
            self._id = chunk.id  # a provider's; the others are made up by langchain for each call
        if chunk.usage_metadata or chunk.response_metadata.keys() - {"model_provider"}:  # that comes with every token
            metadata, usage = chunk.response_metadata, chunk.usage_metadata
            self._tails.append(AIMessageChunk(content="", response_metadata=metadata, usage_metadata=usage))
        extra = {key: value for key, value in chunk.additional_kwargs.items() if key not in NATIVE_KEYS}
        if extra:
            yield self._chunk(additional_kwargs=extra)
        for block in [chunk.content] if isinstance(chunk.content, str) else chunk.content:
            text = block if isinstance(block, str) else block.get("text", "") if block.get("type") == "text" else None
            if text is None:
                yield self._chunk(content=[block])
            elif text:
                self._raw += text
                yield from self._convert(self._parser.feed(text))
        yield from self._pass_native_calls(chunk)

    def end(self) -> Iterator[AIMessageChunk]:
        """The rest of the answer, or a new `prompt` that asks for a call that can be read."""
        yield from self._convert(self._parser.close())
        tail = add_ai_message_chunks(AIMessageChunk(content=""), *self._tails)
        if self._broken and not self._call_count and self._repairs and self.prompt is not None:
            self._repairs -= 1
            request = render_repair(self._broken[0].reason)
            self.prompt = [*self.prompt, AIMessage(self._raw), HumanMessage(request)]
            self._begin()
            yield self._chunk(usage_metadata=tail.usage_metadata)
            return
        for item in self._broken:
            yield from self._call(UNREADABLE, f"{item.reason}: {item.raw[:MAX_RAW_CHARACTERS]}")
        self.prompt = None
        yield self._chunk(
            response_metadata=tail.response_metadata, usage_metadata=tail.usage_metadata, chunk_position="last"
        )

    def _begin(self) -> None:
        self._parser = ToolCallParser(self._names)
        self._raw = ""
        self._broken: list[Malformed] = []
        self._tails: list[AIMessageChunk] = []

    def _convert(self, items: Sequence[Item]) -> Iterator[AIMessageChunk]:
        for item in without_quotes(items, self.prompt or ()):
            if isinstance(item, Text):
                yield self._chunk(content=item.text)
            elif self._names and isinstance(item, Call):
                yield from self._call(item.name, item.arguments)
            elif self._names and isinstance(item, Malformed):
                self._broken.append(item)

    def _call(self, name: str, arguments: str) -> Iterator[AIMessageChunk]:
        """The name first, then the arguments, as providers send them."""
        index, id_ = self._call_count, f"call_{uuid.uuid4().hex[:12]}"
        self._call_count += 1
        yield self._chunk(tool_call_chunks=[tool_call_chunk(name=name, args="", id=id_, index=index)])
        yield self._chunk(tool_call_chunks=[tool_call_chunk(name=None, args=arguments, id=None, index=index)])

    def _pass_native_calls(self, chunk: AIMessage) -> Iterator[AIMessageChunk]:
        """Some servers read the markup themselves and send native calls, though no tools were given."""
        if not self._names:
            return
        for place, piece in enumerate(AIMessageChunk(**_calls_of(chunk)).tool_call_chunks):
            key = place if piece["index"] is None else piece["index"]
            if key not in self._native:
                self._native[key] = self._call_count
                self._call_count += 1
            yield self._chunk(tool_call_chunks=[{**piece, "index": self._native[key]}])

    def _chunk(self, **fields: Any) -> AIMessageChunk:
        return AIMessageChunk(**{"content": "", "id": self._id, **fields})


def _calls_of(message: AIMessage) -> dict[str, Any]:
    if isinstance(message, AIMessageChunk):
        return {"content": "", "tool_call_chunks": message.tool_call_chunks}
    return {"content": "", "tool_calls": message.tool_calls, "invalid_tool_calls": message.invalid_tool_calls}
