"""Rows of a query as a Markdown table that no value can break out of."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

MAX_CELL_CHARACTERS = 300
"""Of one value; a longer one shows its beginning and its length."""

_BREAKS = re.compile(r"\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")


class Rows(NamedTuple):
    """What a query brought, every value as the text that is shown; None is NULL."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str | None]]
    is_cut: bool
    """There are more rows than these."""
    more_columns: int = 0
    """So many columns after these are left out, as not even one row of all of them was short enough."""


def render_table(rows: Rows) -> str:
    """The rows as a Markdown table; the columns alone where there are none."""
    lines = [_line(_header(rows)), _line(["---"] * len(rows.columns))]
    lines += map(row_line, rows.rows)
    return "\n".join(lines)


def fitted(rows: Rows, max_characters: int) -> Rows:
    """So many of the rows that their table has at most `max_characters`: one at least, if need be of few columns."""
    cells = [_header(rows), *([shown_value(value) for value in row] for row in rows.rows[:1])]
    size, width = 0, 0
    for column in zip(*cells, strict=True):
        size += sum(len(cell) + 3 for cell in column) + len("--- | ")
        if width and size + 2 * (len(cells) + 1) > max_characters:
            break
        width += 1
    cut = Rows([*rows.columns[:width]], [row[:width] for row in rows.rows], rows.is_cut, len(rows.columns) - width)
    size, shown = len(render_table(cut._replace(rows=cut.rows[:1]))), min(1, len(rows.rows))
    for row in cut.rows[1:]:
        size += 1 + len(row_line(row))
        if size > max_characters:
            break
        shown += 1
    return cut._replace(rows=cut.rows[:shown], is_cut=rows.is_cut or shown < len(rows.rows))


def row_line(values: Sequence[str | None]) -> str:
    """A row of such a table."""
    return _line(list(map(shown_value, values)))


def shown_value(value: str | None) -> str:
    """On one line, with no bar that would end it. NULL is a word; a text of that word, and an empty one, are quoted."""
    if value is None:
        return "NULL"
    return f"'{value}'" if value in ("", "NULL") else _escaped(value)


def value_text(value: Any) -> str | None:
    """A value of the database as text, nothing rounded; None for NULL."""
    if value is None:
        return None
    if isinstance(value, str):
        return _shortened(value, len(value))
    return _shortened(text := _plain(value), len(text))


def bytes_text(hex_digits: str, length: int) -> str:
    """Bytes by their beginning; what they stand for is not known."""
    rest = "…" if length > len(hex_digits) // 2 else ""
    return f"x'{hex_digits}{rest}' ({length} bytes)"


def _plain(value: Any) -> str:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes_text(bytes(value[:16]).hex(), len(value))
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return str(value)
    if isinstance(value, list | dict | tuple):
        return json.dumps(_with_text_keys(value), ensure_ascii=False, default=_plain)
    return str(value)


def _with_text_keys(value: Any) -> Any:
    """JSON has no other keys, a map of a database has dates and decimals."""
    if isinstance(value, dict):
        return {key if isinstance(key, str) else _plain(key): _with_text_keys(inner) for key, inner in value.items()}
    return [_with_text_keys(inner) for inner in value] if isinstance(value, list | tuple) else value


def _shortened(text: str, length: int) -> str:
    if length <= MAX_CELL_CHARACTERS:
        return text
    return f"{text[:MAX_CELL_CHARACTERS]}… ({length:,} characters)"


def _header(rows: Rows) -> list[str]:
    return [_escaped(_shortened(name, len(name))) for name in rows.columns]


def _escaped(text: str) -> str:
    one_line = _CONTROL.sub("\N{REPLACEMENT CHARACTER}", _BREAKS.sub(" ⏎ ", text))
    return one_line.replace("\\", "\\\\").replace("|", "\\|")


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
