"""A scripted chat model for tests: `ScriptedChatModel` plays the given steps and fails on any other call.

with ScriptedChatModel(call("knowledge_search", query="sick leave"), "Ten days a year [k3f2a].") as model:
    graph = build_rag_graph(model=model, ...)
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, TypeAlias, cast

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.language_models.base import LangSmithParams
from langchain_core.language_models.model_profile import ModelProfile
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, InvalidToolCall, ToolCall
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import (
    ToolCallChunk,
    invalid_tool_call,
    tool_call,
    tool_call_chunk,
)
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import Field, PrivateAttr

PIECE_CHARACTERS = 6
"""Length of a streamed piece: short enough that words and JSON values are cut."""

CHARACTERS_PER_TOKEN = 4
"""For the made-up token counts."""

Call: TypeAlias = ToolCall | InvalidToolCall
Reply: TypeAlias = AIMessage | str | Call | Sequence[Call] | Exception
Step: TypeAlias = Reply | Callable[[list[BaseMessage], tuple[str, ...]], Reply]
"""What one model call does. A callable gets the messages and the names of the bound tools."""


class UnexpectedModelCall(AssertionError):  # noqa: N818  # reads as what happened, like StopIteration
    """The model was called more often than its script says."""


class UnusedSteps(AssertionError):  # noqa: N818
    """The script was not played to its end."""


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """What one call sent to the model."""

    messages: list[BaseMessage]
    tools: tuple[str, ...]
    """Names of the bound tools."""
    options: dict[str, Any]
    """The other keyword arguments, tool_choice and parallel_tool_calls among them."""


def call(name: str, /, **arguments: Any) -> ToolCall:
    """A tool call; the model gives it an id when it plays it."""
    return tool_call(name=name, args=arguments, id=None)


def bad_call(name: str, arguments: str, /) -> InvalidToolCall:
    """A tool call whose arguments are this text instead of a JSON object."""
    return invalid_tool_call(name=name, args=arguments, id=None, error=None)


class ScriptedChatModel(BaseChatModel):
    """Plays one step a call: a text, tool calls, a message, an exception to raise, or a callable that gives one.

    Leaving `with ScriptedChatModel(...)`, or `assert_finished()`, raises on calls beyond the script even where the
    caller swallowed the error, and on steps that were not used.
    """

    profile: ModelProfile | None = Field(default_factory=lambda: ModelProfile(tool_calling=True), exclude=True)
    chunk_delay_seconds: float = 0.0
    """Pause before each streamed piece, in async calls only."""

    _steps: list[Step] = PrivateAttr(default_factory=list)
    _requests: list[ModelRequest] = PrivateAttr(default_factory=list)
    _lock: threading.Lock = PrivateAttr(default_factory=threading.Lock)

    def __init__(self, *steps: Step, **fields: Any) -> None:
        super().__init__(**fields)
        self._steps = list(steps)

    @property
    def requests(self) -> list[ModelRequest]:
        """Every call so far, unexpected ones included."""
        return self._requests

    def assert_finished(self) -> None:
        """Raise UnexpectedModelCall or UnusedSteps unless the script was played exactly."""
        played, planned = len(self._requests), len(self._steps)
        if played > planned:
            raise UnexpectedModelCall(f"{played} model calls, but the script has {planned} steps")
        if played < planned:
            unused = ", ".join(map(_describe_step, self._steps[played:]))
            raise UnusedSteps(f"{planned - played} of {planned} steps were not used: {unused}")

    def __enter__(self) -> ScriptedChatModel:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.assert_finished()
        elif len(self._requests) > len(self._steps):
            error.add_note(f"{len(self._requests)} model calls, but the script has {len(self._steps)} steps")

    def bind_tools(
        self, tools: Sequence[Any], *, tool_choice: str | None = None, **kwargs: Any
    ) -> Runnable[LanguageModelInput, AIMessage]:
        choice = {} if tool_choice is None else {"tool_choice": tool_choice}
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **choice, **kwargs)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"model_name": "scripted"}

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        return LangSmithParams(
            ls_provider="graphrag_agent", ls_model_name=kwargs.get("model") or "scripted", ls_model_type="chat"
        )

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._play(messages, kwargs))])

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return self._generate(messages, **kwargs)

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        for chunk in _split_message(self._play(messages, kwargs)):
            yield ChatGenerationChunk(message=chunk)

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in self._stream(messages, **kwargs):
            await asyncio.sleep(self.chunk_delay_seconds)
            yield chunk

    def _play(self, messages: list[BaseMessage], kwargs: dict[str, Any]) -> AIMessage:
        options = dict(kwargs)
        names = tuple(tool["function"]["name"] for tool in options.pop("tools", None) or ())
        with self._lock:
            at = len(self._requests)
            self._requests.append(ModelRequest(list(messages), names, options))
        if at >= len(self._steps):
            last = messages[-1].text if messages else ""
            raise UnexpectedModelCall(f"model call {at + 1}, but the script has {at} steps; last message: {last!r}")
        step = self._steps[at]
        reply = step(list(messages), names) if callable(step) else step
        if isinstance(reply, Exception):
            raise reply
        return _complete_message(reply, number=at + 1, prompt=messages)


def _complete_message(reply: Reply, *, number: int, prompt: list[BaseMessage]) -> AIMessage:
    message = _build_message(reply).model_copy(deep=True)
    for place, made in enumerate(_calls_of(message)):
        made["id"] = made["id"] or f"call_{number}_{place + 1}"
    message.response_metadata = {"model_name": "scripted", **message.response_metadata}
    if message.usage_metadata is None:
        read = sum(len(part.text) for part in prompt) // CHARACTERS_PER_TOKEN + 1
        written = len(message.text) // CHARACTERS_PER_TOKEN + 1
        message.usage_metadata = UsageMetadata(input_tokens=read, output_tokens=written, total_tokens=read + written)
    return message


def _build_message(reply: Reply) -> AIMessage:
    if isinstance(reply, AIMessage):
        return reply
    if isinstance(reply, str):
        return AIMessage(reply)
    calls = cast("list[Call]", [reply] if isinstance(reply, dict) else list(cast("Sequence[Call]", reply)))
    return AIMessage(
        "",
        tool_calls=[made for made in calls if made["type"] == "tool_call"],
        invalid_tool_calls=[made for made in calls if made["type"] == "invalid_tool_call"],
    )


def _split_message(message: AIMessage) -> list[AIMessageChunk]:
    content = message.content
    contents: list[Any] = _cut(content) if isinstance(content, str) else [content]
    nothing: Any = "" if isinstance(content, str) else []
    aside = message.additional_kwargs
    chunks = [AIMessageChunk(content=nothing, id=message.id, additional_kwargs=aside)] if aside else []
    chunks += [AIMessageChunk(content=piece, id=message.id) for piece in contents]
    for index, made in enumerate(_calls_of(message)):
        chunks += [
            AIMessageChunk(content="", id=message.id, tool_call_chunks=[piece]) for piece in _split_call(made, index)
        ]
    end = AIMessageChunk(
        content=nothing,
        id=message.id,
        response_metadata=message.response_metadata,
        usage_metadata=message.usage_metadata,
        chunk_position="last",
    )
    return [*chunks, end]


def _split_call(made: Call, index: int) -> list[ToolCallChunk]:
    arguments = made["args"]
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    head = tool_call_chunk(name=made["name"], args="", id=made["id"], index=index)
    return [head, *(tool_call_chunk(name=None, args=piece, id=None, index=index) for piece in _cut(text))]


def _calls_of(message: AIMessage) -> list[Call]:
    return [*message.tool_calls, *message.invalid_tool_calls]


def _cut(text: str) -> list[str]:
    return [text[at : at + PIECE_CHARACTERS] for at in range(0, len(text), PIECE_CHARACTERS)]


def _describe_step(step: Step) -> str:
    return getattr(step, "__name__", "a callable") if callable(step) else repr(step)
