"""Replies as LangChain's messages: the library's own conversion, with what it leaves out or gets wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from langchain_core.messages import AIMessage, AIMessageChunk, InvalidToolCall, ToolCall
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.utils.utils import LC_ID_PREFIX
from pydantic import PrivateAttr

from graphrag_agent.models.openai_compatible.event_stream import BrokenReplyError
from graphrag_agent.models.openai_compatible.reply import (
    Delta,
    Reply,
    first_choice,
    join_content,
    message_of,
    part_content,
    part_thoughts,
    raise_reported_error,
    raw_calls,
    read_content,
    whole_counts,
)
from graphrag_agent.models.openai_compatible.tool_calls import (
    Call,
    has_broken_calls,
    read_calls,
    read_whole_call,
)
from graphrag_agent.models.thoughts import ThoughtSplitter

if TYPE_CHECKING:
    from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
    from langchain_openai import ChatOpenAI

    _Model = ChatOpenAI
else:
    _Model = object


KEPT = (
    "content",
    "additional_kwargs",
    "response_metadata",
    "tool_call_chunks",
    "usage_metadata",
    "id",
    "chunk_position",
)


class StrictEnd(AIMessageChunk):
    """The last chunk of a message with calls that are no calls.

    Added to what came before it, it says which ones they are: AIMessageChunk would close the open ends of a truncated
    text. Python asks the right operand first where it is of a subclass.
    """

    _read: tuple[list[ToolCall], list[InvalidToolCall]] = PrivateAttr()

    @classmethod
    def of(cls, chunk: AIMessageChunk, calls: Sequence[Call], *, holds_all: bool) -> StrictEnd:
        """That chunk, with the calls of the whole message; `holds_all` where they came in this very chunk."""
        end = cls(**{name: getattr(chunk, name) for name in KEPT})
        end._read = read_calls(calls)
        if holds_all:
            end.tool_calls, end.invalid_tool_calls = end._read
        return end

    def __radd__(self, before: AIMessageChunk) -> AIMessageChunk:
        whole = AIMessageChunk.__add__(before, self)
        whole.tool_calls, whole.invalid_tool_calls = self._read
        return whole


class Conversion(_Model):
    """From a Reply to chunks and messages, mixed in before ChatOpenAI."""

    if TYPE_CHECKING:
        _opens_thoughts: bool

    def _new_reply(self) -> Reply:
        return Reply(opens_thoughts=self._opens_thoughts)

    def _to_chunk(self, delta: Delta) -> ChatGenerationChunk:
        chunk = self._convert_chunk_to_generation_chunk(delta.as_chunk(), AIMessageChunk, None)
        if chunk is None:  # never: the delta has a choice
            raise BrokenReplyError("the stream holds no message")
        chunk.message.additional_kwargs.update(delta.extras())
        chunk.message.response_metadata = {**(chunk.generation_info or {}), **chunk.message.response_metadata}
        return chunk

    def _to_last_chunk(self, reply: Reply, last: Delta | None) -> ChatGenerationChunk:
        """The chunk that ends the message, with its usage. Raises BrokenReplyError for a reply that was cut off."""
        rest = reply.finish()
        self._opens_thoughts = reply.opens_thoughts
        delta = last or rest
        chunk = self._to_chunk(delta)
        message = cast(AIMessageChunk, chunk.message)
        message.usage_metadata = self._usage_of(reply)
        message.chunk_position = "last"
        if has_broken_calls(reply.calls):
            holds_all = delta.pieces == reply.whole.pieces
            chunk.message = StrictEnd.of(message, reply.calls, holds_all=holds_all)
        return chunk

    def _to_result(self, reply: Reply, message_id: str | None) -> ChatResult:
        """The whole of a streamed reply. Where its text isn't what was streamed, it has an id of its own."""
        if message_id and reply.is_other_text:
            message_id = f"{message_id}-answer"
        chunk = self._to_chunk(replace(reply.whole, pieces=[]))
        valid, invalid = read_calls(reply.calls)
        message = AIMessage(
            content=chunk.message.content,
            additional_kwargs=chunk.message.additional_kwargs,
            response_metadata=chunk.message.response_metadata,
            usage_metadata=self._usage_of(reply),
            tool_calls=valid,
            invalid_tool_calls=invalid,
            id=message_id,
        )
        return ChatResult(generations=[ChatGeneration(message=message, generation_info=chunk.generation_info)])

    def _read_completion(self, body: dict[str, Any]) -> ChatResult:
        """The reply that a body holds which was not streamed."""
        raise_reported_error(body)
        choice = first_choice(body)
        told = message_of(choice)
        if told is None:
            raise BrokenReplyError(f"the server's answer holds no message; it has {sorted(body)}")
        calls = [read_whole_call(at, call) for at, call in enumerate(raw_calls(told))]
        thoughts = ThoughtSplitter()
        content, reasoning, refusal = part_thoughts(read_content(told), thoughts)
        said, thought = thoughts.close()
        content += [said] if said else []
        reasoning += [thought] if thought else []
        if parted := part_content(content):
            content, reasoning = [parted.said], [*reasoning, parted.thought]
        mended = {"role": "assistant", "content": join_content(content), "tool_calls": None, "refusal": None}
        message = {**told, **mended}
        counts = {"usage": whole_counts(body["usage"]) or None} if "usage" in body else {}
        result = self._create_chat_result({**body, **counts, "choices": [{**choice, "message": message}]})
        reply = cast(AIMessage, result.generations[0].message)
        reply.tool_calls, reply.invalid_tool_calls = read_calls(calls)
        reply.additional_kwargs.update(Delta(reasoning=reasoning, refusal=refusal).extras())
        return result

    def _usage_of(self, reply: Reply) -> UsageMetadata | None:
        if reply.usage is None:
            return None
        chunk = self._convert_chunk_to_generation_chunk(reply.usage, AIMessageChunk, None)
        return cast(AIMessageChunk, chunk.message).usage_metadata if chunk else None

    def _message_id(self, run_manager: CallbackManagerForLLMRun | AsyncCallbackManagerForLLMRun | None) -> str | None:
        """The id that langchain-core gives to the message of a run: chunks and message must share it."""
        return f"{LC_ID_PREFIX}-{run_manager.run_id}" if run_manager else None
