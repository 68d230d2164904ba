"""What one run of the model's Python is, whichever interpreter runs it: its end, its limits, its result as text."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from graphrag_agent.errors import ToolArgumentError
from graphrag_agent.retrieval.evidence_tags import storable, without_tags
from graphrag_agent.tools._job import Job

COMPUTE_SECONDS = 5.0
"""Of computing in Monty: a model's sums take milliseconds."""

PRINTED_CHARACTERS = 4_000
"""Of what a run prints, so much is shown."""

MOST_PRINTED = 1_000_000
"""Characters after which a run that prints is ended."""

RESULT_CHARACTERS = 4_000
"""Of the last expression's value, so much is shown."""

ERROR_CHARACTERS = 2_000
"""Of a traceback: its beginning and its end, where the error stands."""

MAX_CALLS_OUT = 100
"""Calls out of the code in one run: searches, refused ones too, and tries to open a file."""

TOO_MANY_CALLS = f"more than {MAX_CALLS_OUT} calls of search; make fewer"

MAX_DEPTH = 12
"""How deep a value is shown."""

MAX_INT_BITS = 14_000
"""Of a number that is shown; Python refuses to write one of more than 4,300 digits."""

Search = Callable[[str, int], list[dict[str, Any]]]
"""What the code's `search(query, top_k)` calls, from the thread of the run. Raises SearchRefused."""

_PLAIN = (float, complex, datetime.date, datetime.time, datetime.timedelta, decimal.Decimal, type(None), bool)


class SearchRefused(Exception):  # noqa: N818  # what the code reads, not an error of ours
    """The text says why a search inside the code brings nothing."""


@dataclass(frozen=True, slots=True)
class MadeFile:
    """A picture that the code saved."""

    name: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Ran:
    """What a run came to. An empty `result` means that the code ended without a value."""

    printed: str
    result: str
    files: tuple[MadeFile, ...] = ()
    left_out: int = 0
    """Further files named as pictures."""


class Interpreter(Protocol):
    """Runs code where it can do no harm."""

    max_runs: int
    """Runs at the same time."""
    about: str
    """What the model must know to write code for it."""
    wall_seconds: float
    """A run may take, with its start and its searches."""

    def run(self, code: str, search: Search | None, job: Job) -> Ran:
        """Run it in this thread. Raises ToolArgumentError for code that fails, ToolFailedError where none can run."""
        ...


def code_error(traceback: str, printed: str) -> ToolArgumentError:
    """The error that lets the model mend its code: the traceback, its middle cut, and what was printed before."""
    half = ERROR_CHARACTERS // 2
    shown = traceback if len(traceback) <= ERROR_CHARACTERS else f"{traceback[:half]}…{traceback[-half:]}"
    before = f"\nPrinted before that:\n{printed}" if printed.strip() else ""
    return ToolArgumentError(
        storable(f"The code failed; mend it and call again.\n{without_tags(shown.strip() + before)}")
    )


def shown_printed(text: str, count: int) -> str:
    """The beginning of what was printed, and how many of the `count` characters are missing."""
    left_out = count - len(text)
    return f"{text}…\n({left_out} more characters printed; print less)" if left_out > 0 else text


def cut(text: str, limit: int, what: str) -> str:
    """The text, or its beginning and how much of it is left out."""
    return text if len(text) <= limit else f"{text[:limit]}…\n({len(text) - limit} more characters {what})"


def render_value(value: Any, limit: int = RESULT_CHARACTERS) -> str:
    """The value as Python writes it, cut at the limit.

    The value is hostile: it may hold itself, or one list a billion times. So no `repr` of the whole is ever made.
    """
    pieces: list[str] = []
    length = 0
    for piece in _pieces(value, limit, MAX_DEPTH):
        pieces.append(piece)
        length += len(piece)
        if length > limit:
            break
    return cut_result("".join(pieces), limit)


def cut_result(text: str, limit: int = RESULT_CHARACTERS) -> str:
    """The result, or its beginning; how long it is nobody knows, as it is never written to its end."""
    return text if len(text) <= limit else f"{text[:limit]}… (cut)"


def _pieces(value: Any, limit: int, depth: int) -> Iterator[str]:
    if isinstance(value, str | bytes):
        yield _quoted(value, limit)
    elif isinstance(value, int) and not isinstance(value, bool):
        yield str(value) if value.bit_length() <= MAX_INT_BITS else f"<an int of {value.bit_length()} bits>"
    elif isinstance(value, _PLAIN):
        yield repr(value)
    elif isinstance(value, Mapping | list | tuple | set | frozenset):
        yield from ("…",) if depth == 0 else _container_pieces(value, limit, depth - 1)
    else:
        name = str(getattr(value, "name", type(value).__name__))[:100]
        yield f"<{name}: print what you need of it>"


def _quoted(value: str | bytes, limit: int) -> str:
    """As Python writes it, as far as the limit: its quotes depend on those in the whole text."""
    if len(value) <= limit + 1:
        return repr(value)
    if isinstance(value, bytes):
        return repr(value[: limit + 1] + b"".join(quote for quote in (b"'", b'"') if quote in value))
    return repr(value[: limit + 1] + "".join(quote for quote in ("'", '"') if quote in value))


def _container_pieces(value: Any, limit: int, depth: int) -> Iterator[str]:
    opening, closing = "[]" if isinstance(value, list) else "()" if isinstance(value, tuple) else "{}"
    if not value and isinstance(value, set | frozenset):
        yield "set()"
        return
    yield opening
    for place, item in enumerate(value):
        yield ", " if place else ""
        yield from _pieces(item, limit, depth)
        if isinstance(value, Mapping):
            yield ": "
            yield from _pieces(value[item], limit, depth)
    yield ",)" if isinstance(value, tuple) and len(value) == 1 else closing
