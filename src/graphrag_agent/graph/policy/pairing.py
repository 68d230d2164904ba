"""The rule that providers enforce: each AI message with calls is followed at once by their results, in call order."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from graphrag_agent.retrieval.evidence_tags import without_tags

EMPTY_RESULT = "(empty)"
"""Providers refuse a tool message without text."""


def calls_of(message: BaseMessage) -> list[dict[str, Any]]:
    """Every call that a provider wants an answer to, unparsable ones included, in the order it gets them back."""
    if not isinstance(message, AIMessage):
        return []
    return [*map(dict, message.tool_calls), *map(dict, message.invalid_tool_calls)]


def last_calls(turn: Sequence[BaseMessage]) -> list[dict[str, Any]]:
    """The calls of the last round that have no result yet."""
    answered: set[str] = set()
    for message in reversed(turn):
        if isinstance(message, ToolMessage):
            answered.add(message.tool_call_id)
        elif calls := calls_of(message):
            return [call for call in calls if call["id"] not in answered]
    return []


def pair_messages(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """A list that a model may see: lost results are replaced by an error, strays dropped, empty ones filled."""
    paired: list[BaseMessage] = []
    at = 0
    while at < len(messages):
        message = messages[at]
        at += 1
        if isinstance(message, ToolMessage):
            continue  # a stray: results are taken below, with their call
        paired.append(message)
        calls = calls_of(message)
        results: dict[str, ToolMessage] = {}
        while calls and at < len(messages) and isinstance(result := messages[at], ToolMessage):
            results[result.tool_call_id] = result
            at += 1
        paired += [_result_for(call, results) for call in calls]
    return paired


def pairing_problems(messages: Sequence[BaseMessage]) -> list[str]:
    """What a provider would refuse in this list; empty when it is sound."""
    problems = []
    at = 0
    while at < len(messages):
        message = messages[at]
        at += 1
        if isinstance(message, ToolMessage):
            problems.append(f"tool message {message.tool_call_id!r} follows no call")
            continue
        ids = [call["id"] for call in calls_of(message)]
        if len(set(ids)) < len(ids) or not all(ids):
            problems.append(f"call ids are missing or repeated: {ids!r}")
        results = messages[at : at + len(ids)]
        if [getattr(result, "tool_call_id", None) for result in results] != ids:
            problems.append(f"calls {ids!r} are not answered at once and in order")
        problems += [f"the result of call {result.id!r} is empty" for result in results if not result.content]
        at += len(ids)
    return problems


def error_message(call: Mapping[str, Any], kind: str, text: str, *, retryable: bool = False) -> ToolMessage:
    """An error as the result of a call, in the form that the model is told about; it may repeat a stranger's words."""
    body = {"error": {"type": kind, "message": without_tags(text), "retryable": retryable}}
    return tool_message(call, json.dumps(body, ensure_ascii=False), {"retryable": retryable}, is_error=True)


def tool_message(call: Mapping[str, Any], text: str, artifact: Any = None, *, is_error: bool = False) -> ToolMessage:
    """The result of a call; its message id follows from the call's, so that a repeated step replaces it."""
    return ToolMessage(
        text or EMPTY_RESULT,
        tool_call_id=call["id"],
        name=call["name"] or "?",
        id=f"result-{call['id']}",
        status="error" if is_error else "success",
        artifact=artifact,
    )


def _result_for(call: Mapping[str, Any], results: Mapping[str, ToolMessage]) -> ToolMessage:
    result = results.get(call["id"])
    if result is None:
        return error_message(call, "interrupted", "no result: the turn was interrupted", retryable=True)
    return result if result.content else result.model_copy(update={"content": EMPTY_RESULT})
