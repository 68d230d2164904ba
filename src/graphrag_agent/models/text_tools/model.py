"""Tool calling for any chat model: `TextToolsModel`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any, Literal, Self

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.language_models.base import LangSmithParams
from langchain_core.language_models.model_profile import ModelProfile
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, message_chunk_to_message
from langchain_core.messages.ai import add_ai_message_chunks
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import Field, model_validator

from graphrag_agent.models.text_tools.prompting import render_instructions, rewrite_messages
from graphrag_agent.models.text_tools.reply import Reply

QUIET = RunnableConfig(callbacks=[])
"""Callbacks of the run must not see the inner model's text: it has the markup in it."""


class TextToolsModel(BaseChatModel):
    """A chat model that calls tools in text, and looks from outside like one with native calls.

    The tools are described in the system message, calls and results of earlier rounds are plain turns, and the inner
    model is never given tools. Calls come as tool call chunks as soon as they are complete. Blanks beside a call are
    dropped. Usage includes repair requests.
    """

    inner: BaseChatModel
    max_repairs: Literal[0, 1] = 1
    """Requests to send an unreadable call again, in one answer."""
    streaming: bool = Field(default=False)
    """As the inner model's, where that has been set."""

    @model_validator(mode="after")
    def _stream_like_inner(self) -> Self:
        if "streaming" not in self.model_fields_set and "streaming" in self.inner.model_fields_set:
            self.streaming = bool(getattr(self.inner, "streaming", False))
        return self

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: Any = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        choice = {} if tool_choice is None else {"tool_choice": tool_choice}
        kwargs.pop("strict", None)  # nothing holds a text to a schema
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **choice, **kwargs)

    def _resolve_model_profile(self) -> ModelProfile:
        return {**(self.inner.profile or {}), "tool_calling": True}

    @property
    def _llm_type(self) -> str:
        return f"text-tools-{self.inner._llm_type}"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {**self.inner._identifying_params, "max_repairs": self.max_repairs}

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        return self.inner._get_ls_params(stop, **kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        reply, options = self._open(messages, **kwargs)
        chunks: list[AIMessageChunk] = []
        while reply.prompt is not None:
            message = self.inner.invoke(reply.prompt, QUIET, stop=stop, **options)
            chunks += [*reply.feed(message), *reply.end()]
        return _as_result(chunks)

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        reply, options = self._open(messages, **kwargs)
        chunks: list[AIMessageChunk] = []
        while reply.prompt is not None:
            message = await self.inner.ainvoke(reply.prompt, QUIET, stop=stop, **options)
            chunks += [*reply.feed(message), *reply.end()]
        return _as_result(chunks)

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        reply, options = self._open(messages, **kwargs)
        while reply.prompt is not None:
            for piece in self.inner.stream(reply.prompt, QUIET, stop=stop, **options):
                yield from map(_as_generation, reply.feed(piece))
            yield from map(_as_generation, reply.end())

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        reply, options = self._open(messages, **kwargs)
        while reply.prompt is not None:
            async for piece in self.inner.astream(reply.prompt, QUIET, stop=stop, **options):
                for chunk in reply.feed(piece):
                    yield _as_generation(chunk)
            for chunk in reply.end():
                yield _as_generation(chunk)

    def _open(
        self,
        messages: list[BaseMessage],
        *,
        tools: Sequence[dict[str, Any]] = (),
        tool_choice: Any = None,
        parallel_tool_calls: bool | None = None,
        **options: Any,
    ) -> tuple[Reply, dict[str, Any]]:
        """The answer to come, and what else the inner model is given."""
        offered = () if tool_choice == "none" else tools
        instructions = render_instructions(offered, tool_choice, is_parallel=parallel_tool_calls is not False)
        names = [tool["function"]["name"] for tool in offered]
        return Reply(rewrite_messages(messages, instructions), names, repairs=self.max_repairs), options


def _as_result(chunks: Sequence[AIMessageChunk]) -> ChatResult:
    message = message_chunk_to_message(add_ai_message_chunks(*chunks))
    return ChatResult(generations=[ChatGeneration(message=message)])


def _as_generation(chunk: AIMessageChunk) -> ChatGenerationChunk:
    return ChatGenerationChunk(message=chunk)
