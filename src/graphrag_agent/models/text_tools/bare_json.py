"""Calls without any markup: a message that is nothing but JSON naming an offered tool (Llama 3 and others)."""

from __future__ import annotations

import re
from collections.abc import Collection

from graphrag_agent.models.text_tools.items import Item, Malformed
from graphrag_agent.models.text_tools.json_bodies import (
    ARGUMENT_KEYS,
    CUT_OFF,
    NOT_JSON,
    find_json_stop,
    is_call_shaped,
    parse_call,
    parse_object,
)

_FIRST_KEYS = ("name", *ARGUMENT_KEYS, "type", "function", "id")
_KEY = re.compile(r'"(\w*)("?)')
_NAME = re.compile(r'"name"\s*(?::\s*(?:"([^"]*)("?))?)?')
_BETWEEN = frozenset("[],; \t\r\n}")


def may_be_bare_call(text: str, names: Collection[str]) -> bool:
    """Whether the message that begins so can be a call: decided by the first key, and the name if that comes first."""
    if not text:
        return True
    if text[0] == "[":
        text = text[1:].lstrip()
    if text[:1] not in {"", "{"}:
        return False
    text = text[1:].lstrip()
    if not text:
        return True
    key = _KEY.match(text)
    if key is None:
        return False
    if not key[2]:
        return key.end() == len(text) and any(known.startswith(key[1]) for known in _FIRST_KEYS)
    name = _NAME.match(text)
    if name and name[1] is not None:
        return name[1] in names if name[2] else any(known.startswith(name[1]) for known in names)
    return key[1] in _FIRST_KEYS


def read_bare_calls(text: str, names: Collection[str]) -> list[Item] | None:
    """The calls that make up the whole message; None where it is anything else."""
    items: list[Item] = []
    at = 0
    while at < len(text):
        if text[at] in _BETWEEN:
            at += 1
            continue
        if text[at] != "{":
            return None
        stop = find_json_stop(text, at)
        end = stop.at if stop.state == "closed" else len(text)
        body = text[at:end]
        value = parse_object(body, is_ended=stop.state == "closed", wrappers=1)
        if value is None:
            if not _names_a_tool(body, names):
                return None
            return [*items, Malformed(body, NOT_JSON if stop.state == "closed" else CUT_OFF)]
        if not is_call_shaped(value):
            return None
        item = parse_call(body, is_ended=stop.state == "closed", raw=body)
        if getattr(item, "name", None) not in names and not isinstance(item, Malformed):
            return None
        items.append(item)
        at = end
    return items or None


def _names_a_tool(body: str, names: Collection[str]) -> bool:
    return any(name[1] in names and name[2] for name in _NAME.finditer(body))
