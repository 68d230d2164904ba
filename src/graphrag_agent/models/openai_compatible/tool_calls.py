"""Tool calls put together from a stream's deltas, whatever the server leaves out or says twice. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from langchain_core.messages import InvalidToolCall, ToolCall
from langchain_core.messages.tool import invalid_tool_call, tool_call

from graphrag_agent.whole_characters import whole_characters


class Piece(NamedTuple):
    """What one delta adds to a call; `name` and `id` are told once, `call` is the index of the call."""

    call: int
    id: str | None
    name: str | None
    arguments: str


@dataclass(slots=True)
class Call:
    """One call of the message so far."""

    index: int
    id: str | None = None
    name: str = ""
    fragments: list[str] = field(default_factory=list)

    @property
    def arguments(self) -> str:
        """The text of the arguments so far."""
        return "".join(self.fragments)

    def takes(self, id_: str | None, name: str | None, *, by_index: bool) -> bool:
        """Whether a delta that tells this id and this function goes on with this call."""
        if not name or not self.name or (id_ and id_ == self.id):
            return True
        two_ids = bool(id_ and self.id)
        if by_index and not two_ids:
            return True
        if name != self.name:
            return False
        # some servers make up an id for each delta, so another id alone starts no other call
        return not is_whole(self.arguments) and bool(self.arguments or not two_ids)


def read_whole_call(index: int, raw: dict[str, Any]) -> Call:
    """A call of a message that was not streamed."""
    function = _function_of(raw)
    name, id_ = _text(function.get("name")) or "", _text(raw.get("id"))
    return Call(index, id_, name, [arguments_text(function.get("arguments"))])


class CallAssembler:
    """The calls of one message, in the order of their first deltas.

    Servers leave the index out, give every call index 0, repeat name and id in each delta or send the arguments as an
    object. A delta goes to the call with its index, else its id, else the last one, unless it plainly starts another.
    """

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self._at_index: dict[int, Call] = {}

    def add(self, delta: dict[str, Any]) -> Piece:
        """What this delta of `tool_calls` adds, and to which call."""
        function = _function_of(delta)
        id_, name = _text(delta.get("id")), _text(function.get("name"))
        call = self._find(_number(delta.get("index")), id_, name)
        arguments = arguments_text(function.get("arguments"))
        call.fragments.append(arguments)
        return Piece(call.index, _learn_id(call, id_), _learn_name(call, name), arguments)

    def _find(self, index: int | None, id_: str | None, name: str | None) -> Call:
        if index is None:
            known = next((call for call in self.calls if id_ and call.id == id_), None)
            known = known or (self.calls[-1] if self.calls else None)
        else:
            known = self._at_index.get(index)
        if known is not None and known.takes(id_, name, by_index=index is not None):
            return known
        taken = {call.index for call in self.calls}
        free = index if index is not None and index not in taken else max(taken, default=-1) + 1
        call = Call(free)
        self.calls.append(call)
        self._at_index[free if index is None else index] = call
        return call


def arguments_text(arguments: Any) -> str:
    """Arguments as the text of JSON, in which most servers send them."""
    if arguments is None:
        return ""
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def is_whole(arguments: str) -> bool:
    """Whether the text is a complete JSON object."""
    return bool(arguments.strip()) and isinstance(_read_arguments(arguments), dict)


def read_calls(calls: Sequence[Call]) -> tuple[list[ToolCall], list[InvalidToolCall]]:
    """The calls whose arguments are an object, and the others as they came: nothing is repaired.

    langchain-core closes the open ends of a truncated text and so makes up arguments that the model never finished.
    """
    valid: list[ToolCall] = []
    invalid: list[InvalidToolCall] = []
    for call in calls:
        text = call.arguments
        read = _read_arguments(text)
        if isinstance(read, dict):
            valid.append(tool_call(name=call.name, args=read, id=call.id))
        else:
            invalid.append(invalid_tool_call(name=call.name, args=text, id=call.id, error=read))
    return valid, invalid


def has_broken_calls(calls: Sequence[Call]) -> bool:
    """Whether any call's arguments are no object."""
    return any(isinstance(_read_arguments(call.arguments), str) for call in calls)


def _read_arguments(text: str) -> dict[str, Any] | str:
    """The object that the text is (no text is an empty one), or why it is none."""
    if not text.strip():
        return {}
    try:
        # line breaks inside strings are common, and nothing is lost by them
        value = json.loads(text, strict=False)
        if "\\u" in text or not text.isascii():  # half a character can neither be sent back nor stored
            value = json.loads(whole_characters(json.dumps(value, ensure_ascii=False)))
    except (ValueError, RecursionError) as error:
        return f"the arguments are not valid JSON: {error}"
    return value if isinstance(value, dict) else "the arguments are no JSON object"


def _function_of(raw: dict[str, Any]) -> dict[str, Any]:
    function = raw.get("function")
    return function if isinstance(function, dict) else raw


def _learn_id(call: Call, id_: str | None) -> str | None:
    if not id_ or call.id:
        return None
    call.id = id_
    return id_


def _learn_name(call: Call, name: str | None) -> str | None:
    """What to tell of the name: a repeated one nothing, a piece of one that piece."""
    if not name or name == call.name:
        return None
    call.name += name
    return name


def _text(value: Any) -> str | None:
    return None if value is None or value == "" else str(value)


def _number(value: Any) -> int | None:
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
