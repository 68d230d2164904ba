"""What a worker answered, checked: a hostile file may have taken it over."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from graphrag_agent.errors import ParseError

MAX_COUNT = 2**31 - 1
_MAX_ERROR_CHARS = 400


class PreparedPassage(NamedTuple):
    """A passage `text[start:end]` and the terms of its index text."""

    start: int
    end: int
    heading: str
    page: int | None
    terms: dict[str, int]


class Answer(NamedTuple):
    """A parsed file. Passages are in order, apart from each other and inside the text."""

    title: str
    source_type: str
    text: str
    passages: Sequence[PreparedPassage]


def read_answer(line: bytes) -> Answer:
    """The answer in the line. Raises ParseError with the worker's reason, or when the answer is none."""
    try:
        told = json.loads(line)
        if not (isinstance(told, dict) and isinstance(told.get("error", ""), str)):
            raise ValueError("no object")
        if "error" in told:
            reason = " ".join(told["error"].split())[:_MAX_ERROR_CHARS]
        else:
            return _checked(told)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ParseError("its parser answered nonsense, as if taken over; leave it out or save it anew") from error
    raise ParseError(reason)


def _checked(told: dict[str, Any]) -> Answer:
    title, source_type, text = told["title"], told["source_type"], told["text"]
    for value in (title, source_type, text):
        value.encode()  # not text, or halves of surrogate pairs
    passages = []
    position = 0
    for row in told["passages"]:
        passage = PreparedPassage(*row)
        _check(passage, position, len(text))
        position = passage.end
        passages.append(passage)
    return Answer(title, source_type, text, passages)


def _check(passage: PreparedPassage, first: int, last: int) -> None:
    start, end, heading, page, terms = passage
    heading.encode()
    if not (type(start) is type(end) is int and first <= start < end <= last):
        raise ValueError("a passage outside the text")
    if not (page is None or (type(page) is int and 0 < page <= MAX_COUNT)):
        raise ValueError("a page that is none")
    "".join(terms).encode()
    if not all(type(count) is int and 0 < count <= MAX_COUNT for count in terms.values()):
        raise ValueError("terms without counts")
