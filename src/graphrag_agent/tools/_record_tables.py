"""Records of JSON and JSON Lines as rows: nested values by their path, lists of plain values in one cell."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from graphrag_agent.retrieval.ingestion.parsing.json_records import load_json, load_json_lines
from graphrag_agent.whole_characters import whole_characters

Record = Mapping[str, str]
"""Cells by their column; numbers and truth values are `Plain`."""


class Plain(str):
    """A number or truth value as the file writes it, not in quotes."""

    __slots__ = ()


def read_json_records(data: bytes) -> list[tuple[str, list[Record]]]:
    """The file's lists of records, each with its name; the list that is the whole file has none."""
    found = load_json(data, Plain)
    if isinstance(found, list):
        return [("", _records(found))]
    named = found.items() if isinstance(found, dict) else ()
    return [(_text(name), _records(value)) for name, value in named if isinstance(value, list)]


def read_json_lines_records(data: bytes) -> list[tuple[str, list[Record]]]:
    """The lines' records."""
    return [("", _records(load_json_lines(data, Plain)))]


def _records(values: list[Any]) -> list[Record]:
    return [_record(value) for value in values if isinstance(value, dict)]


def _record(value: Mapping[str, Any]) -> Record:
    """Its cells by their column; {"a": {"b": 1}, "a.b": 2} has two of one name."""
    cells: dict[str, str] = {}
    for name, cell in _cells(value, ""):
        free, number = name, 1
        while free in cells:
            number += 1
            free = f"{name} ({number})"
        cells[free] = cell
    return cells


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
    return whole_characters(value.replace("\0", "")).strip()
