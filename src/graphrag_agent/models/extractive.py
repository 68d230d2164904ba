"""`ExtractiveChatModel`, the chat model named `offline`: it searches, then answers with sentences from the evidence.

It follows fixed rules and calls nothing, so whatever stands in the evidence can be quoted but never obeyed.
"""

from __future__ import annotations

import itertools
import json
import re
import uuid
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.language_models.base import LangSmithParams
from langchain_core.language_models.model_profile import ModelProfile
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    ToolCall,
    ToolMessage,
)
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import tool_call, tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import Field

from graphrag_agent.models.evidence_blocks import EvidenceBlock, parse_evidence, remove_evidence
from graphrag_agent.models.phrases import render_phrase
from graphrag_agent.models.questions import QuestionPart, is_small_talk, split_question
from graphrag_agent.models.quotes import select_quotes
from graphrag_agent.models.words import detect_language
from graphrag_agent.token_estimate import estimate_tokens

MODEL_NAME = "offline-extractive"
SEARCH_TOOL = "knowledge_search"

_PIECE = re.compile(r"\s*\S{1,12}")


class ExtractiveChatModel(BaseChatModel):
    """Answers with whole sentences copied from the evidence, each with its id, or says that nothing was found.

    With `knowledge_search` bound it first asks for one search per part of the question. The same messages always give
    the same text and calls; only message and call ids differ.
    """

    profile: ModelProfile | None = Field(default_factory=lambda: ModelProfile(tool_calling=True), exclude=True)

    def bind_tools(
        self, tools: Sequence[Any], *, tool_choice: str | None = None, **kwargs: Any
    ) -> Runnable[LanguageModelInput, AIMessage]:
        choice = {} if tool_choice is None else {"tool_choice": tool_choice}
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **choice, **kwargs)

    @property
    def _llm_type(self) -> str:
        return MODEL_NAME

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"model_name": MODEL_NAME}

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        params = LangSmithParams(
            ls_provider="graphrag_agent", ls_model_name=kwargs.get("model") or MODEL_NAME, ls_model_type="chat"
        )
        return LangSmithParams(**params, ls_stop=stop) if stop else params

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=_reply(messages, stop=stop, **kwargs))])

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return self._generate(messages, stop, **kwargs)

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        for chunk in _split_message(_reply(messages, stop=stop, **kwargs)):
            yield ChatGenerationChunk(message=chunk)

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in self._stream(messages, stop, **kwargs):
            yield chunk


def _reply(
    messages: list[BaseMessage],
    *,
    stop: list[str] | None = None,
    tools: Sequence[dict[str, Any]] = (),
    tool_choice: str | None = None,
    **_: Any,
) -> AIMessage:
    turn = max((at for at, message in enumerate(messages) if isinstance(message, HumanMessage)), default=-1)
    question = remove_evidence(messages[turn].text) if turn >= 0 else ""
    earlier = [
        remove_evidence(message.text) for message in messages[: max(turn, 0)] if isinstance(message, HumanMessage)
    ]
    results = [message for message in messages[turn + 1 :] if isinstance(message, ToolMessage)]
    can_search = tool_choice != "none" and any(tool["function"]["name"] == SEARCH_TOOL for tool in tools)
    parts = split_question(question, previous=earlier) or [QuestionPart(question, question)]
    text, calls = "", list[ToolCall]()
    if is_small_talk(question) and not results and tool_choice in {None, "auto", "none"}:
        text = render_phrase("introduction", language=detect_language(question))
    elif can_search and not results:
        calls = [_search_call(part.query) for part in parts]
    else:
        given = messages[max(turn, 0) : turn + 1]  # evidence may stand behind the question
        text = _answer(parts, question, results, [*messages[turn + 1 :], *given] if results else messages)
    for mark in stop or ():
        text = text.partition(mark)[0]
    return _build_message(text, calls, prompt=messages)


def _search_call(query: str) -> ToolCall:
    return tool_call(name=SEARCH_TOOL, args={"query": query}, id=f"call_{uuid.uuid4().hex[:12]}")


def _answer(parts: list[QuestionPart], question: str, results: list[ToolMessage], sources: list[BaseMessage]) -> str:
    language = detect_language(question)
    blocks = _find_evidence(sources)
    if not blocks:
        failure = _find_failure(results)
        if failure:
            return render_phrase("failed", language=language, query=question, reason=failure)
        return render_phrase("not_found" if results else "not_given", language=language, query=question)
    paragraphs, used = list[str](), set[str]()
    for part in parts:
        quotes = [f"{quote.text} [{quote.id}]" for quote in select_quotes(part, blocks)]
        fresh = [quote for quote in quotes if quote not in used]
        used.update(fresh)
        if not quotes:
            paragraphs.append(render_phrase("not_found", language=language, query=part.query))
        elif fresh:
            paragraphs.append("\n".join(fresh))
    return "\n\n".join(paragraphs)


def _find_evidence(sources: list[BaseMessage]) -> list[EvidenceBlock]:
    """Evidence of this turn, each id once, the best of every search first; what the model itself said is none."""
    found = [parse_evidence(message.text) for message in sources if not isinstance(message, AIMessage)]
    in_turns = itertools.chain.from_iterable(itertools.zip_longest(*found))
    return list({block.id: block for block in in_turns if block}.values())


def _find_failure(results: list[ToolMessage]) -> str:
    """Why the search failed, where every result is an error; else empty."""
    reasons = [_error_text(result) for result in results]
    return reasons[-1] if reasons and all(reasons) else ""


def _error_text(result: ToolMessage) -> str:
    try:
        error = json.JSONDecoder().raw_decode(result.text)[0]["error"]  # a note of the loop's may follow
        return str(error["message"] if isinstance(error, dict) else error)
    except (ValueError, TypeError, KeyError):
        return (result.text.strip() or "no reason given") if result.status == "error" else ""


def _build_message(text: str, calls: list[ToolCall], *, prompt: list[BaseMessage]) -> AIMessage:
    read = estimate_tokens("".join(message.text for message in prompt))
    written = estimate_tokens(text + "".join(json.dumps(call["args"], ensure_ascii=False) for call in calls))
    return AIMessage(
        text,
        tool_calls=calls,
        usage_metadata=UsageMetadata(input_tokens=read, output_tokens=written, total_tokens=read + written),
        response_metadata={"model_name": MODEL_NAME, "finish_reason": "tool_calls" if calls else "stop"},
    )


def _split_message(message: AIMessage) -> list[AIMessageChunk]:
    chunks = [AIMessageChunk(content=piece) for piece in _PIECE.findall(message.text)]
    for index, call in enumerate(message.tool_calls):
        head = tool_call_chunk(name=call["name"], args="", id=call["id"], index=index)
        pieces = _PIECE.findall(json.dumps(call["args"], ensure_ascii=False))
        tails = [tool_call_chunk(name=None, args=piece, id=None, index=index) for piece in pieces]
        chunks += [AIMessageChunk(content="", tool_call_chunks=[piece]) for piece in [head, *tails]]
    end = AIMessageChunk(
        content="",
        usage_metadata=message.usage_metadata,
        response_metadata=message.response_metadata,
        chunk_position="last",
    )
    return [*chunks, end]
