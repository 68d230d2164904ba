"""The rule that providers enforce: each AI message with calls is followed at once by their results, in call order."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from graphrag_agent.retrieval.evidence_tags import without_tags
from graphrag_agent.tools.evidence_message import hits_of
from graphrag_agent.tools.spec import TOOL_NAME

EMPTY_RESULT = "(empty)"
"""Providers refuse a tool message without text."""

UNREADABLE_CHARACTERS = 200
"""Of arguments that can't be read, what the model is shown again."""

_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")


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


def with_sound_calls(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """The messages with every call in a form that a provider takes: strict ones refuse the whole history otherwise.

    Arguments are an object, also of a call whose own can't be read, and names have letters that a name may have. What
    was wrong with a call stands in its result.
    """
    sound: list[BaseMessage] = []
    for message in messages:
        if isinstance(message, AIMessage) and not all(map(_is_sound, calls := calls_of(message))):
            update = {"tool_calls": [_sound(call) for call in calls], "invalid_tool_calls": []}
            message = message.model_copy(update=update)
        elif isinstance(message, ToolMessage) and message.name and not TOOL_NAME.fullmatch(message.name):
            message = message.model_copy(update={"name": _sound_name(message.name)})
        sound.append(message)
    return sound


def error_message(call: Mapping[str, Any], kind: str, text: str, *, retryable: bool = False) -> ToolMessage:
    """An error as the result of a call, in the form that the model is told about; it may repeat a stranger's words."""
    body = {"error": {"type": kind, "message": text, "retryable": retryable}}
    return tool_message(call, json.dumps(body, ensure_ascii=False), {"retryable": retryable}, is_error=True)


def tool_message(call: Mapping[str, Any], text: str, artifact: Any = None, *, is_error: bool = False) -> ToolMessage:
    """The result of a call; its message id follows from the call's, so that a repeated step replaces it.

    A text that isn't evidence can't pose as some: it may repeat a stranger's words, with the id of a real passage.
    """
    message = ToolMessage(
        text or EMPTY_RESULT,
        tool_call_id=call["id"],
        name=call["name"] or "?",
        id=f"result-{call['id']}",
        status="error" if is_error else "success",
        artifact=artifact,
    )
    return message if hits_of(message) else message.model_copy(update={"content": without_tags(message.text)})


def _is_sound(call: Mapping[str, Any]) -> bool:
    return isinstance(call["args"], dict) and bool(TOOL_NAME.fullmatch(call["name"] or ""))


def _sound(call: Mapping[str, Any]) -> dict[str, Any]:
    args = call["args"]
    if not isinstance(args, dict):
        args = {"unreadable": str(args)[:UNREADABLE_CHARACTERS]} if args else {}
    return {"name": _sound_name(call["name"]), "args": args, "id": call["id"], "type": "tool_call"}


def _sound_name(name: str | None) -> str:
    return _NOT_IN_NAMES.sub("_", name or "")[:64] or "_"


def _result_for(call: Mapping[str, Any], results: Mapping[str, ToolMessage]) -> ToolMessage:
    result = results.get(call["id"])
    if result is None:
        return error_message(call, "interrupted", "no result: the turn was interrupted", retryable=True)
    return result if result.content else result.model_copy(update={"content": EMPTY_RESULT})
