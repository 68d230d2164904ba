"""Records of JSON and JSON Lines as rows: nested values by their path, lists of plain values in one cell."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from graphrag_agent.errors import ParseError
from graphrag_agent.retrieval.ingestion.parsing.decoding import decode_text

Record = Mapping[str, str]
"""Cells by their column; numbers and truth values are `Plain`."""


class Plain(str):
    """A number or truth value as the file writes it, not in quotes."""

    __slots__ = ()


def read_json_records(data: bytes) -> dict[str, list[Record]]:
    """The file's lists of records by their name; the list that is the whole file has none."""
    text = decode_text(data)
    try:
        found = _load(text)
    except json.JSONDecodeError as error:
        if not error.msg.startswith("Extra data"):
            raise ParseError(f"not valid JSON: line {error.lineno}, {error.msg}") from error
        return read_json_lines_records(data)
    if isinstance(found, list):
        return {"": _records(found)}
    named = found.items() if isinstance(found, dict) else ()
    return {name: _records(value) for name, value in named if isinstance(value, list)}


def read_json_lines_records(data: bytes) -> dict[str, list[Record]]:
    """The lines' records."""
    return {"": _records([_load(line) for line in decode_text(data).split("\n") if line.strip()])}


def _load(text: str) -> Any:
    # numbers stay as they are written, and are told apart from texts
    return json.loads(text, parse_float=Plain, parse_int=Plain, parse_constant=Plain)


def _records(values: list[Any]) -> list[Record]:
    return [dict(_cells(value, "")) for value in values if isinstance(value, dict)]


def _cells(value: Any, name: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _cells(inner, f"{name}.{_text(key)}" if name else _text(key))
    elif isinstance(value, list) and not any(isinstance(item, dict | list) for item in value):
        yield name, ", ".join(_scalar(item) for item in value if item is not None)
    elif isinstance(value, list):
        yield name, _text(json.dumps(value, ensure_ascii=False))
    elif value is not None:
        yield name, _scalar(value)


def _scalar(value: Any) -> str:
    if isinstance(value, bool):
        return Plain(str(value).lower())
    return value if isinstance(value, Plain) else _text(value)


def _text(value: str) -> str:
    # half of an escaped surrogate pair is valid JSON but no text
    return value.replace("\0", "").encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").strip()
