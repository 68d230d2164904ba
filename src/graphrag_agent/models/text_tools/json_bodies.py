"""The JSON inside a call's markup: where it ends, how it is closed, and the call it makes.

Broken JSON is repaired only where nothing is guessed: brackets or a quote are added when the model itself said that the
call is over (its end tag came), or when only the wrapper around complete arguments stayed open.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, NoReturn

from graphrag_agent.models.text_tools.items import Call, Malformed
from graphrag_agent.whole_characters import whole_characters

ARGUMENT_KEYS = ("arguments", "parameters")
MAX_NAME_CHARACTERS = 128

CUT_OFF = "the call is cut off"
NOT_JSON = "the arguments are not valid JSON"
NOT_AN_OBJECT = "the arguments must be a JSON object"
NO_NAME = "the name of the tool is missing"

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+("?)|[{}\[\]<]', re.DOTALL)
_MARK = re.compile(r'\\.|["{}\[\]<]', re.DOTALL)
_PLAIN = re.compile(r"[^\n`{}\[\]:\\]+")  # words: nothing that may be the next key or another level
_CLOSER = {"{": "}", "[": "]"}
_INVALID = object()


class JsonStop(NamedTuple):
    """Where JSON stops."""

    at: int
    state: Literal["closed", "tag", "open"]
    """Complete; met a `<` outside its strings; still open where the text ends."""
    open_string: int = -1
    """Where a string begins that has no end."""


def find_json_stop(text: str, start: int) -> JsonStop:
    """The place behind the JSON object or list that begins at `start`."""
    depth = 0
    for token in _TOKEN.finditer(text, start):
        mark = token[0][0]
        if mark == '"':
            if not token[1]:
                return JsonStop(len(text), "open", token.start())
        elif mark == "<":
            return JsonStop(token.start(), "tag")
        else:
            depth += 1 if mark in "{[" else -1
            if depth == 0:
                return JsonStop(token.end(), "closed")
    return JsonStop(len(text), "open")


class JsonScan:
    """Whether JSON that comes in pieces is still open, at the cost of looking at each piece once."""

    def __init__(self) -> None:
        self._depth = 0
        self._is_string = False
        self._is_escape = False
        self._is_broken = False

    @property
    def is_open(self) -> bool:
        """Whether it has begun and goes on: no closing bracket yet, and no `<` outside of its strings."""
        return self._depth > 0 and not self._is_broken

    def feed(self, piece: str) -> None:
        """Look at the next piece."""
        for hit in _MARK.finditer(piece, 1 if self._is_escape and piece else 0):
            mark = hit[0]
            if self._is_string:
                self._is_string = mark != '"'
            elif mark in "{[":
                self._depth += 1
            elif mark in "}]":
                self._depth -= 1
            elif mark == "<":
                self._is_broken = True
            else:
                self._is_string = mark == '"' and self._depth > 0
        backslashes = len(piece) - len(piece.rstrip("\\"))
        if piece:
            self._is_escape = (
                self._is_string and (backslashes - (self._is_escape and backslashes == len(piece))) % 2 == 1
            )


def parse_object(body: str, *, is_ended: bool, wrappers: int = 0) -> dict[str, Any] | None:
    """The object in `body`, or None where that takes a guess.

    `is_ended`: the model closed the call. If not, at most `wrappers` brackets may be missing.
    """
    body = body.strip()
    value = _load(body)
    if value is _INVALID and body.startswith(
        "{{"
    ):  # braces doubled, as in the prompt templates some models learnt from
        value = _load(body.replace("{{", "{").replace("}}", "}"))
    if value is _INVALID and (closed := _close(body, most=None if is_ended else wrappers)):
        value = _load(closed)
    return value if isinstance(value, dict) else None


def parse_call(body: str, *, is_ended: bool, raw: str) -> Call | Malformed:
    """The call in an object that names its tool: `{"name": ..., "arguments": {...}}` and its relatives."""
    value = parse_object(body, is_ended=is_ended, wrappers=1)
    if value is None:
        return Malformed(raw, NOT_JSON if is_ended else CUT_OFF)
    named = _unwrap(value)
    arguments = next((named[key] for key in ARGUMENT_KEYS if key in named), None)
    if arguments is None and not is_ended:
        return Malformed(raw, CUT_OFF)
    return build_call(named.get("name"), arguments, raw=raw)


def build_call(name: Any, arguments: Any, *, raw: str) -> Call | Malformed:
    """A call of these parts. Arguments may be an object, one as text, or nothing at all."""
    if not isinstance(name, str) or not name.strip() or len(name) > MAX_NAME_CHARACTERS:
        return Malformed(raw, NO_NAME)
    if isinstance(arguments, str):
        arguments = _load(arguments) if arguments.strip() else {}
    if arguments is None:
        arguments = {}
    if arguments is _INVALID:
        return Malformed(raw, NOT_JSON)
    if not isinstance(arguments, dict):
        return Malformed(raw, NOT_AN_OBJECT)
    text = json.dumps(arguments, ensure_ascii=False)
    return Call(name.strip(), whole_characters(text), raw)  # half a surrogate pair can't be sent on


def is_call_shaped(value: Mapping[str, Any]) -> bool:
    """Whether the object names a tool and brings arguments for it."""
    named = _unwrap(value)
    return isinstance(named.get("name"), str) and any(key in named for key in ARGUMENT_KEYS)


def parse_value(text: str) -> Any:
    """The list or object in the text; the text itself where it is neither."""
    value = _load(text)
    return value if isinstance(value, dict | list) else text


def _unwrap(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """The part with the name: OpenAI's form has it one level down, in `function`."""
    function = value.get("function")
    if isinstance(function, dict):
        return function
    return {**value, "name": function} if isinstance(function, str) and "name" not in value else value


def _load(text: str) -> Any:
    try:
        value = json.loads(text, strict=False, parse_constant=_refuse)
        json.dumps(value, allow_nan=False)  # 1e999 is read as infinity
    except (ValueError, RecursionError):
        return _INVALID
    return value


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _close(body: str, *, most: int | None) -> str | None:
    """The body with what is missing at its end. `most`: so many brackets at most, and no quote."""
    open_brackets, open_string = list[str](), ""
    for token in _TOKEN.finditer(body):
        mark = token[0][0]
        if mark in _CLOSER:
            open_brackets.append(_CLOSER[mark])
        elif mark in "}]":
            if not open_brackets or open_brackets.pop() != mark:
                return None
        elif mark == '"' and not token[1]:
            open_string = token[0][1:]
    closers = "".join(reversed(open_brackets))
    if not closers or (most is not None and (open_string or len(closers) > most)):
        return None
    if not open_string:
        return body + closers
    unquoted = body.removesuffix(closers)  # {"query": "sick leave}: the brackets are there, the quote is not
    is_plain = _PLAIN.fullmatch(open_string.removesuffix(closers))
    return f'{unquoted}"{closers}' if is_plain else None
