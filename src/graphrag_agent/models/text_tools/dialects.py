"""How models write tool calls: one reader for each dialect.

A reader gets the text from its marker on, and says what it is as soon as no further text can change that; None means
that more is needed. It is pure, so that the pieces a text comes in don't matter.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from graphrag_agent.models.text_tools.items import Call, Item, Malformed, Text
from graphrag_agent.models.text_tools.json_bodies import (
    ARGUMENT_KEYS,
    CUT_OFF,
    MAX_NAME_CHARACTERS,
    NO_NAME,
    NOT_JSON,
    build_call,
    find_json_stop,
    parse_call,
    parse_object,
    parse_value,
)

MAX_TAG_CHARACTERS = MAX_NAME_CHARACTERS + 100
MAX_JUNK_CHARACTERS = 400
"""Markup around anything but JSON is a broken call if it ends within so many characters, a mere mention if not."""


class Reading(NamedTuple):
    """What a marker turned out to begin."""

    items: tuple[Item, ...]
    end: int
    """Characters that it takes."""


Reader: TypeAlias = Callable[[str, bool], Reading | None]
"""Called with the text, and whether it is complete."""


class _Body(NamedTuple):
    text: str
    is_ended: bool
    end: int


_TAG = re.compile(r"""<tool_call((?:\s+[\w-]+\s*=\s*(?:"[^"<>{]*"|'[^'<>{]*'|[^\s"'<>{/]+))*)\s*(?:(/?)>|(?=\{))""")
_TAG_NAME = re.compile(r"""\sname\s*=\s*["']?([^"'<>]*?)["']?\s*(?=\s[\w-]+\s*=|$)""")
_BLANK_OR_FENCE = re.compile(r"\s*(?:`{1,3}\w*\s*)?")
_FUNCTION = re.compile(r"<function=([^<>{\n]*)(?:>|(?=\{))")
_RESULT = re.compile(r"<(tool_result|tool_response)(?:\s[^<>]*)?>")
_LIKE_A_CALL = re.compile(r"[{}\[\]()<>=]")
_CLOSING_FENCE = re.compile(r"\s*`{0,3}")
_PARAMETER = re.compile(r"<parameter=([^<>\n]+)>\n?(.*?)\n?</parameter>", re.DOTALL)
_MISTRAL_HEAD = re.compile(r"([^\s\[\]{}<>\"]+)\s*(?:\[CALL_ID\][^\[\]{}]*)?(?:\[ARGS\])?\s*")
_DEEPSEEK_LABEL = re.compile(r"\s*(?:`{1,3}\w*)?\s*$")
_XML_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_XML_CALL = re.compile(r"<ToolCall>(.*?)</ToolCall>", re.DOTALL)


def read_tool_call(text: str, is_whole: bool) -> Reading | None:
    """`<tool_call name="x">{...}</tool_call>`, ours, and `<tool_call>{"name": ...}</tool_call>` of Hermes and Qwen."""
    opener, end_tag = "<tool_call", "</tool_call>"
    tag = _TAG.match(text)
    if tag is None or tag.end() > MAX_TAG_CHARACTERS:
        is_likely = "name".startswith(text[len(opener) :].partition("<")[0].strip()[:4])
        return _read_unfinished_tag(text, opener, is_whole, is_likely=is_likely)
    found = _TAG_NAME.search(tag[1])
    name = found[1] if found else None
    if tag[2]:
        return Reading((build_call(name, None, raw=tag[0]),), tag.end())
    blank = _BLANK_OR_FENCE.match(text, tag.end())
    start = blank.end() if blank else tag.end()
    rest = text[start : start + len(end_tag)]
    if rest.startswith(("{", "[")):
        return _read_json(text, start, opener, end_tag, name, is_whole)
    if rest == end_tag:
        return Reading((build_call(name, None, raw=text[: start + len(end_tag)]),), start + len(end_tag))
    if rest.startswith("<function="):
        inner = read_function(text[start:], is_whole)
        return inner and Reading(inner.items, start + inner.end)
    if _is_beginning(rest, end_tag, "<function="):
        return Reading((Malformed(text, CUT_OFF),), len(text)) if is_whole else None
    return _read_junk(text, tag.end(), end_tag, is_whole)


def read_function(text: str, is_whole: bool) -> Reading | None:
    """`<function=x>{...}</function>` of Llama, and `<parameter=...>` inside it of Qwen3-Coder."""
    opener, end_tag = "<function=", "</function>"
    tag = _FUNCTION.match(text)
    if tag is None or tag.end() > MAX_TAG_CHARACTERS:
        return _read_unfinished_tag(text, opener, is_whole, is_likely=True)
    name = tag[1].strip()
    start = _skip_blank(text, tag.end())
    rest = text[start : start + len(end_tag)]
    if rest.startswith("{"):
        return _read_json(text, start, opener, end_tag, name, is_whole)
    if not _is_beginning(rest, end_tag, "<parameter=") and not rest.startswith(("<parameter=", end_tag)):
        return _read_junk(text, tag.end(), end_tag, is_whole)
    end = text.find(end_tag, start)
    if end < 0:
        return Reading((Malformed(text, CUT_OFF),), len(text)) if is_whole else None
    raw, body = text[: end + len(end_tag)], text[start:end]
    if _PARAMETER.sub("", body).strip():
        return Reading((Malformed(raw, "a parameter is not closed"),), len(raw))
    arguments = {key: parse_value(value) for key, value in _PARAMETER.findall(body)}
    return Reading((build_call(name, arguments, raw=raw),), len(raw))


def read_mistral(text: str, is_whole: bool) -> Reading | None:
    """`[TOOL_CALLS][{"name": ...}]` and `[TOOL_CALLS]x[ARGS]{...}` of Mistral."""
    opener, end_tag = "[TOOL_CALLS]", "[/TOOL_CALLS]"
    start = _skip_blank(text, len(opener))
    if text[start : start + 1] in {"[", "{"}:
        return _read_json(text, start, opener, end_tag, None, is_whole)
    stop = re.compile(r"[{\n]").search(text, start)
    is_near = stop is not None and stop.start() - start <= MAX_TAG_CHARACTERS
    if stop and is_near and stop[0] == "{" and (head := _MISTRAL_HEAD.fullmatch(text, start, stop.start())):
        return _read_json(text, stop.start(), opener, end_tag, head[1], is_whole)
    if stop or len(text) - start > MAX_TAG_CHARACTERS:
        return Reading((), len(opener))
    return Reading((Malformed(text, CUT_OFF),), len(text)) if is_whole else None


def read_python_tag(text: str, is_whole: bool) -> Reading | None:
    """`<|python_tag|>{"name": ..., "parameters": {...}}` of Llama 3, several of them with `;` between."""
    opener, end_tag = "<|python_tag|>", "<|eom_id|>"
    items: list[Item] = []
    start = _skip_blank(text, len(opener))
    while True:
        if start == len(text):
            return Reading((Malformed(text, CUT_OFF),), len(text)) if is_whole else None
        if text[start] not in "{[":
            return _read_junk(text, len(opener), end_tag, is_whole)
        reading = _read_json(text, start, opener, end_tag, None, is_whole)
        if reading is None:
            return None
        items += reading.items
        start = _skip_blank(text, reading.end, also=";")
        if start == len(text) and not is_whole:
            return None
        if ";" not in text[reading.end : start] or text[start : start + 1] != "{":
            return Reading(tuple(items), reading.end)


def read_deepseek(text: str, is_whole: bool) -> Reading | None:
    """`<｜tool▁call▁begin｜>function<｜tool▁sep｜>x` and fenced JSON, or `x<｜tool▁sep｜>{...}`, of DeepSeek."""
    bar = text[1]
    opener, separator, end_tag = (f"<{bar}tool▁{word}{bar}>" for word in ("call▁begin", "sep", "call▁end"))
    brace = text.find("{", 0, len(opener) + MAX_JUNK_CHARACTERS)
    head = text[len(opener) : brace if brace >= 0 else len(text)]
    kind, found, label = head.partition(separator)
    if brace < 0 or not found or end_tag in head:
        return _read_junk(text, len(opener), end_tag, is_whole)
    name = label if kind.strip() in {"", "function"} else kind
    name = _DEEPSEEK_LABEL.sub("", name).strip()
    return _read_json(text, brace, opener, end_tag, name, is_whole)


def read_r2r(text: str, is_whole: bool) -> Reading | None:
    """`<Action><ToolCalls><ToolCall><Name>x</Name><Parameters>{...}</Parameters></ToolCall>...` of R2R."""
    opener, end_tag = "<ToolCalls>", "</ToolCalls>"
    action = "<Action>" if text.startswith("<Action>") else ""
    block = text[len(action) :].lstrip()
    if not block.startswith(opener):
        if not _is_beginning(block, opener):
            return Reading((Text(text[0]),), 1)
        return Reading((Malformed(text, CUT_OFF),), len(text)) if is_whole else None
    end = text.find(end_tag)
    if end < 0:
        return Reading((Malformed(text, CUT_OFF),), len(text)) if is_whole else None
    raw = text[: end + len(end_tag)]
    calls = [_parse_xml_call(found) for found in _XML_CALL.finditer(_XML_COMMENT.sub("", raw))]
    return Reading(tuple(calls) or (Malformed(raw, NO_NAME),), len(raw))


def read_invented_result(text: str, is_whole: bool) -> Reading | None:
    """`<tool_result>...</tool_result>`: results come from tools, so what a model writes there is made up."""
    tag = _RESULT.match(text)
    if tag is None:
        is_open = not is_whole and len(text) < MAX_TAG_CHARACTERS and not re.search(r"[<>]", text[1:])
        return None if is_open else Reading((Text(text[0]),), 1)
    if tag.end() > MAX_TAG_CHARACTERS:
        return Reading((Text(text[0]),), 1)
    end_tag = f"</{tag[1]}>"
    end = text.find(end_tag, tag.end())
    if end < 0:
        return Reading((), tag.end()) if is_whole else None
    return Reading((), end + len(end_tag))


def _parse_xml_call(found: re.Match[str]) -> Call | Malformed:
    name = re.search(r"<Name>(.*?)</Name>", found[1], re.DOTALL)
    parameters = re.search(r"<Parameters>(.*?)</Parameters>", found[1], re.DOTALL)
    arguments = parse_object(parameters[1], is_ended=True) if parameters and parameters[1].strip() else {}
    if arguments is None:
        return Malformed(found[0], NOT_JSON)
    return build_call(name and name[1], arguments, raw=found[0])


def _read_unfinished_tag(text: str, opener: str, is_whole: bool, *, is_likely: bool) -> Reading | None:
    """A tag without its `>`, or one that is something else: no reader's, so its first character is text."""
    rest = text[len(opener) :]
    is_other = opener[-1].isalnum() and rest[:1] not in {"", "/", "<"} and not rest[0].isspace()
    stop = re.search(r"[<>{]", rest)
    end = len(opener) + stop.start() if stop else len(text)
    if is_other or end >= MAX_TAG_CHARACTERS or (stop and stop[0] != "<"):
        return Reading((Text(text[0]),), 1)
    if not stop and not is_whole:
        return None
    if not is_likely:
        return Reading((Text(text[0]),), 1)
    return Reading((Malformed(text[:end], CUT_OFF),), end)


def _read_junk(text: str, start: int, end_tag: str, is_whole: bool) -> Reading | None:
    end = text.find(end_tag, start, start + MAX_JUNK_CHARACTERS + len(end_tag))
    if end >= 0:
        raw = text[: end + len(end_tag)]
        return Reading((Malformed(raw, NOT_JSON),), len(raw))
    if len(text) - start >= MAX_JUNK_CHARACTERS + len(end_tag):
        return Reading((), start)
    if not is_whole:
        return None
    is_cut = _LIKE_A_CALL.search(text, start) or not text[start:].strip()
    return Reading((Malformed(text, CUT_OFF),), len(text)) if is_cut else Reading((), start)


def _read_json(text: str, start: int, opener: str, end_tag: str, name: str | None, is_whole: bool) -> Reading | None:
    body = _find_body(text, start, opener, end_tag, is_whole)
    if body is None:
        return None
    raw = text[: body.end]
    if text[start] == "[":
        return Reading(tuple(_parse_list(body, raw)), body.end)
    if name is None:
        return Reading((parse_call(body.text, is_ended=body.is_ended, raw=raw),), body.end)
    arguments = parse_object(body.text, is_ended=body.is_ended)
    if arguments is None:
        return Reading((Malformed(raw, NOT_JSON if body.is_ended else CUT_OFF),), body.end)
    for key in ARGUMENT_KEYS:  # the name twice: in the tag and inside
        if set(arguments) == {"name", key} and arguments["name"] == name and isinstance(arguments[key], dict):
            arguments = arguments[key]
            break
    return Reading((build_call(name, arguments, raw=raw),), body.end)


def _find_body(text: str, start: int, opener: str, end_tag: str, is_whole: bool) -> _Body | None:
    stop = find_json_stop(text, start)
    if stop.state == "closed":
        end = _skip_fence(text, start, stop.at, is_whole)
        return None if end is None else _Body(text[start : stop.at], True, end)
    end = -1
    if stop.state == "tag":
        rest = text[stop.at : stop.at + len(opener + end_tag)]
        if rest.startswith(opener):
            return _Body(text[start : stop.at], False, stop.at)
        if _is_beginning(rest, opener, end_tag) and not is_whole:
            return None
        end = text.find(end_tag, stop.at)
    elif is_whole and stop.open_string >= 0:  # a quote is missing, so that the end tag passed for a part of the string
        end = text.find(end_tag, stop.open_string)
    if end >= 0:
        return _Body(text[start:end], True, end + len(end_tag))
    return _Body(text[start:], False, len(text)) if is_whole else None


def _parse_list(body: _Body, raw: str) -> list[Call | Malformed]:
    """The calls of a list, each by itself: one that is broken takes none of the others with it."""
    calls: list[Call | Malformed] = []
    at = body.text.find("{")
    while at >= 0:
        stop = find_json_stop(body.text, at)
        is_ended = stop.state == "closed" or body.is_ended
        calls.append(parse_call(body.text[at : stop.at], is_ended=is_ended, raw=raw))
        at = body.text.find("{", stop.at)
    return calls or [Malformed(raw, NO_NAME if body.is_ended else CUT_OFF)]


def _skip_blank(text: str, start: int, *, also: str = "") -> int:
    while start < len(text) and (text[start].isspace() or text[start] in also):
        start += 1
    return start


def _skip_fence(text: str, start: int, end: int, is_whole: bool) -> int | None:
    """The place behind the fence that closes one opened before `start`; None while it may still come."""
    if "```" not in text[:start]:
        return end
    stop = end + len(_CLOSING_FENCE.match(text[end:])[0])  # type: ignore[index]  # it matches the empty text too
    if text[:stop].endswith("```"):
        return stop
    return end if is_whole or stop < len(text) else None


def _is_beginning(text: str, *tags: str) -> bool:
    return any(tag.startswith(text) for tag in tags)


def _deepseek_tokens(*words: str) -> tuple[str, ...]:
    return tuple(f"<{bar}{word}{bar}>" for bar in "｜|" for word in words)


READERS: dict[str, Reader] = {
    "<tool_call": read_tool_call,
    "<function=": read_function,
    "[TOOL_CALLS]": read_mistral,
    "<|python_tag|>": read_python_tag,
    "<Action>": read_r2r,
    "<ToolCalls>": read_r2r,
    "<tool_result": read_invented_result,
    "<tool_response": read_invented_result,
    **dict.fromkeys(_deepseek_tokens("tool▁call▁begin"), read_deepseek),
}
"""Marker -> its reader. No marker is the beginning of another."""

STRAY = (
    "</tool_call>",
    "[/TOOL_CALLS]",
    "<|eom_id|>",
    "<|eot_id|>",
    "<|im_end|>",
    "<|python_end|>",
    *_deepseek_tokens("tool▁calls▁begin", "tool▁calls▁end", "tool▁call▁end", "end▁of▁sentence"),
)
"""Markup that means nothing by itself, and is never for the reader."""

AFTER_CALL = ("</function>", "</ToolCalls>", "</Action>")
"""The same, but only right behind a call."""
