"""Calls as models really send them, put into the form that the guard judges."""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.messages.tool import tool_call

from graphrag_agent.errors import ToolArgumentError
from graphrag_agent.graph.policy.pairing import calls_of
from graphrag_agent.tools.registry import ToolRegistry

MAX_ARGUMENT_CHARACTERS = 20_000
"""Longer arguments would be sent back to the model in every round; a page of code is a tenth of this."""

SHOWN_CHARACTERS = 200

CALL_BLOCKS = ("tool_use", "function_call", "tool_call")
"""Types of content blocks that are calls: Anthropic's and Bedrock's, OpenAI's Responses, LangChain's own."""

_LONG_NUMBER = (
    "a number in the arguments has more than 64 bits, which no checkpointer can write down; send it as a text"
)


def tidy_calls(message: AIMessage, turn: Sequence[BaseMessage], names: Collection[str]) -> AIMessage:
    """The message with calls that can be judged and answered.

    Wrappers (`multi_tool_use.parallel`) are opened, name prefixes (`functions.`) dropped, huge arguments cut and
    refused, numbers that can't be kept refused too, and every call has an id of its own: models repeat ids and leave
    them out. Where a provider writes calls into the content too, those that are no such call are left out there: its
    library would send them along, and nothing answers them.
    """
    used = {call["id"] for earlier in turn for call in calls_of(earlier)}
    valid: list[dict[str, Any]] = []
    invalid: list[dict[str, Any]] = [dict(call) for call in message.invalid_tool_calls]
    for call in message.tool_calls:
        for opened in _opened(dict(call), names):
            size = len(json.dumps(opened["args"], ensure_ascii=False, default=str))
            if size > MAX_ARGUMENT_CHARACTERS:
                invalid.append(_too_long(opened, size))
            elif _has_long_number(opened["args"]):
                invalid.append(_refused(opened, _written(opened), _LONG_NUMBER))
            else:
                valid.append(opened)
    invalid = [call if len(str(call["args"] or "")) <= MAX_ARGUMENT_CHARACTERS else _cut(call) for call in invalid]
    named = [_named(call, used) for call in valid]
    update: dict[str, Any] = {"tool_calls": named, "invalid_tool_calls": [_named(call, used) for call in invalid]}
    if isinstance(message.content, list):
        update["content"] = _without_strays(message.content, {call["id"] for call in named})
    return message.model_copy(update=update)


def call_in_text(message: AIMessage, turn: Sequence[BaseMessage], tools: ToolRegistry) -> AIMessage:
    """The message as a call, where it holds nothing but mended arguments for the call that was refused before it.

    Models do that after an error. JSON that mends nothing is an answer.
    """
    refused = _last_refused(turn)
    arguments = _json_object(message.text) if refused and not calls_of(message) else None
    if refused is None or arguments is None or refused not in tools:
        return message
    try:
        tools[refused].validate(arguments)
    except ToolArgumentError:
        return message
    mended = tool_call(name=refused, args=arguments, id=f"call_{uuid.uuid4().hex[:12]}")
    return message.model_copy(update={"content": "", "tool_calls": [mended]})


def _without_strays(content: Sequence[Any], ids: set[str]) -> list[Any]:
    """The blocks without the calls among them that have none of these ids, or one that came before."""
    left, kept = set(ids), list[Any]()
    for block in content:
        if isinstance(block, Mapping) and block.get("type") in CALL_BLOCKS:
            id_ = block.get("call_id") or block.get("id")
            if id_ not in left:
                continue
            left.remove(id_)
        kept.append(block)
    return kept


def _last_refused(turn: Sequence[BaseMessage]) -> str | None:
    """Name of the tool whose arguments were refused at the end of the turn."""
    last = turn[-1] if turn else None
    is_refused = isinstance(last, ToolMessage) and last.status == "error" and '"bad_arguments"' in last.text
    return str(last.name) if last is not None and is_refused else None


def _json_object(text: str) -> dict[str, Any] | None:
    bare = text.strip().removeprefix("```json").removeprefix("```").removesuffix("```").strip()
    if not (bare.startswith("{") and bare.endswith("}")):
        return None
    try:
        value = json.loads(bare)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _opened(call: dict[str, Any], names: Collection[str]) -> Iterator[dict[str, Any]]:
    inside = _parsed(call["args"].get("tool_uses")) if isinstance(call["args"], Mapping) else None
    if call["name"] not in names and isinstance(inside, list) and inside:
        for use in inside:
            use = use if isinstance(use, Mapping) else {}
            name = str(use.get("recipient_name") or use.get("name") or "?")
            arguments = _parsed(use.get("parameters", use.get("arguments", {})))
            yield {"name": _short(name, names), "args": arguments, "id": None, "type": "tool_call"}
    else:
        yield {**call, "name": _short(call["name"] or "?", names)}


def _parsed(given: Any) -> Any:
    """What was given as JSON in a string, as models do inside wrappers; else what was given."""
    try:
        return json.loads(given) if isinstance(given, str) else given
    except (ValueError, RecursionError):
        return given


def _short(name: str, names: Collection[str]) -> str:
    """The name without a prefix such as `functions.`, where only that makes it known."""
    last = name.rpartition(".")[2]
    return last if name not in names and last in names else name


def _named(call: dict[str, Any], used: set[str]) -> dict[str, Any]:
    id_ = call["id"] if call["id"] and call["id"] not in used else f"call_{uuid.uuid4().hex[:12]}"
    used.add(id_)
    return {**call, "id": id_, "name": call["name"] or "?"}


def _has_long_number(value: Any) -> bool:
    if isinstance(value, int):
        return not -(2**63) <= value < 2**64
    inside = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    return any(map(_has_long_number, inside))


def _too_long(call: dict[str, Any], size: int) -> dict[str, Any]:
    return _refused(call, _written(call), _longer_than_taken(size))


def _cut(call: dict[str, Any]) -> dict[str, Any]:
    return _refused(call, str(call["args"]), _longer_than_taken(len(str(call["args"]))))


def _written(call: Mapping[str, Any]) -> str:
    return json.dumps(call["args"], ensure_ascii=False, default=str)


def _longer_than_taken(size: int) -> str:
    return f"the arguments have {size} characters, at most {MAX_ARGUMENT_CHARACTERS} are taken; send less"


def _refused(call: Mapping[str, Any], written: str, error: str) -> dict[str, Any]:
    shown = written if len(written) <= SHOWN_CHARACTERS else f"{written[:SHOWN_CHARACTERS]} ..."
    return {"name": call["name"], "args": shown, "id": call["id"], "error": error, "type": "invalid_tool_call"}
