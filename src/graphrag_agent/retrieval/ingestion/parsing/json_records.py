"""JSON and JSON Lines: one line of text a record, "name: value; name: value", so that a record can be cited alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import groupby

from graphrag_agent.documents import HEADING_SEPARATOR
from graphrag_agent.errors import ParseError
from graphrag_agent.retrieval.ingestion.parsing.decoding import decode_text
from graphrag_agent.retrieval.ingestion.parsing.parsed_document import ParsedDocument, Section
from graphrag_agent.retrieval.ingestion.parsing.table import CELL_SEPARATOR
from graphrag_agent.whole_characters import whole_characters

_LIST_SEPARATOR = ", "
_TOO_DEEP = "damaged, or nested too deep; flatten it"

Line = tuple[str, str]
"""Heading and text."""


def parse_json(data: bytes, title: str) -> ParsedDocument:
    """A list's items, or an object's lists of objects, as one line each; also reads JSON Lines by this suffix."""
    return _document(load_json(data), title)


def parse_json_lines(data: bytes, title: str) -> ParsedDocument:
    """Each line's record as one line; blank lines are left out."""
    return _document(load_json_lines(data), title)


def load_json(data: bytes, number: Callable[[str], object] = str) -> object:
    """The file's value, of JSON Lines a list; numbers as they are written, 1.10 is a version to some.

    Raises ParseError that names the line.
    """
    try:
        return _load(decode_text(data), number)
    except json.JSONDecodeError as error:
        if not error.msg.startswith("Extra data"):
            raise ParseError(
                f"not valid JSON: line {error.lineno}, {error.msg}; mend it and ingest it again"
            ) from error
    return load_json_lines(data, number)


def load_json_lines(data: bytes, number: Callable[[str], object] = str) -> list[object]:
    """The lines' values, as `load_json` reads them; blank lines are left out."""
    values = []
    for place, line in enumerate(decode_text(data).split("\n"), start=1):
        if line.strip():
            try:
                values.append(_load(line, number))
            except json.JSONDecodeError as error:
                raise ParseError(f"line {place} is not valid JSON: {error.msg}; mend it") from error
    return values


def _load(text: str, number: Callable[[str], object]) -> object:
    try:
        return json.loads(text, parse_float=number, parse_int=number, parse_constant=number)
    except RecursionError as error:
        raise ParseError(_TOO_DEEP) from error


def _document(value: object, title: str) -> ParsedDocument:
    try:
        lines = [line for line in _lines(value, "") if line[1]]
    except RecursionError as error:
        raise ParseError(_TOO_DEEP) from error
    sections = []
    position = 0
    for heading, group in groupby(lines, key=lambda line: line[0]):
        end = position + sum(len(text) + 1 for _, text in group) - 1
        sections.append(Section(position, end, heading, kind="table"))
        position = end + 1
    text = "\n".join(text for _, text in lines)
    return ParsedDocument(text=text, title=title, source_type="json", sections=tuple(sections))


def _lines(value: object, heading: str) -> Iterator[Line]:
    """A list is its items; an object is one line, and the lists of objects in it are theirs below its heading."""
    if isinstance(value, list):
        for item in value:
            yield heading, _render(item)
    elif isinstance(value, dict):
        groups = {name: inner for name, inner in value.items() if _is_records(inner)}
        yield heading, _render({name: inner for name, inner in value.items() if name not in groups})
        for name, inner in groups.items():
            yield from _lines(inner, f"{heading}{HEADING_SEPARATOR}{name}" if heading else name)
    else:
        yield heading, _render(value)


def _is_records(value: object) -> bool:
    return isinstance(value, list) and any(isinstance(item, dict) for item in value)


def _render(value: object) -> str:
    return CELL_SEPARATOR.join(f"{name}: {text}" if name else text for name, text in _cells(value, ""))


def _cells(value: object, name: str) -> Iterator[tuple[str, str]]:
    """The leaves with their path, "a.b"; lists without objects in one cell."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _cells(inner, f"{name}.{key}" if name else key)
    elif isinstance(value, list):
        if any(isinstance(item, dict | list) for item in value):
            for number, item in enumerate(value, start=1):
                yield from _cells(item, f"{name}.{number}" if name else str(number))
        else:
            yield from _cells(_LIST_SEPARATOR.join(filter(None, map(_scalar, value))), name)
    elif text := _scalar(value):
        yield name, text


def _scalar(value: object) -> str:
    if value is None:
        return ""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    # half of an escaped surrogate pair is valid JSON but can't be stored
    return " ".join(whole_characters(text).split())
