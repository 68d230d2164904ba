"""Tables and results as a model reads them, and as a reader finds them in the file. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from graphrag_agent.tools._query_result import row_line, shown_value
from graphrag_agent.tools._sheet_places import column_letters
from graphrag_agent.tools._table_answer import ColumnTold, ResultTold, TableTold, cut

MAX_TEXT_CHARACTERS = 6_000
"""Of a result or the description of a table."""
MAX_SENTENCE_CHARACTERS = 400
_SAMPLE_CHARACTERS = 40
_RECORD_SUFFIXES = (".json", ".jsonl", ".parquet")

_Row = Sequence[str | None]


def describe_table(table: TableTold) -> str:
    """Its name, size and columns, each with its type, its name in the file and a few cells."""
    samples = [["first row", "second row", "last row"][at] for at in _sample_places(table)]
    header = ["column", "type", "in the file", *samples]
    rows = []
    for at, column in enumerate(table.columns):
        cells = [None if row[at] is None else cut(row[at] or "", _SAMPLE_CHARACTERS) for row in table.sample]
        rows.append([column.name, _kind(column), column.title, *cells])
    shown = _fitting(header, rows)
    lines = [f"Table {table.name}: {_count(table.row_count, 'row')}, {_count(len(rows), 'column')}", *shown.lines]
    if shown.row_count < len(rows):
        others = ", ".join(column.name for column in table.columns[shown.row_count :])
        lines.append(f"More columns: {cut(others, MAX_TEXT_CHARACTERS // 4)}")
    return "\n".join([*lines, *(f"({note})" for note in table.notes)])


def render_result(result: ResultTold, tables: Sequence[str]) -> str:
    """The query, its rows as a Markdown table, and how many of them there are.

    A single row is told in a sentence too: the check of an answer compares sentences, and a figure alone in a row of a
    Markdown table says nothing of what it counts.
    """
    shown = _fitting(result.columns, result.rows)
    lines = [f"SQL: {result.sql}", *shown.lines]
    if shown.row_count < len(result.rows) or result.has_more:
        rest = "there are more: aggregate, filter, or read on with LIMIT and OFFSET"
        lines.append(f"The first {_count(shown.row_count, 'row')}; {rest}")
    elif shown.row_count == 1:
        told = "; ".join(
            f"{name}: {shown_value(value)}" for name, value in zip(result.columns, result.rows[0], strict=True)
        )
        lines.append(f"1 row from {', '.join(tables)}: {cut(told, MAX_SENTENCE_CHARACTERS)}")
    else:
        lines.append(_count(shown.row_count, "row"))
    if result.left_out:
        verb = "is" if result.left_out == 1 else "are"
        lines.append(f"{_count(result.left_out, 'more column')} {verb} not shown; name those that you need")
    return "\n".join(lines)


def place_in_file(source: str, table: TableTold, columns: Sequence[ColumnTold]) -> str:
    """Where the columns' data stands: prices.csv!A2:C120, book.xlsx!Sheet 1!A2:C120, or the numbers of its records."""
    named = " ".join(source.split())
    if source.lower().endswith(_RECORD_SUFFIXES):
        records = f"records {table.rows[0]} to {table.rows[1]}" if table.rows else "records"
        return f"{named}, {table.sheet}: {records}" if table.sheet else f"{named}, {records}"
    parts = [named, table.sheet] if table.sheet else [named]
    if table.rows and columns:
        first, last = (column_letters(end(column.place for column in columns)) for end in (min, max))
        parts.append(f"{first}{table.rows[0]}:{last}{table.rows[1]}")
    return "!".join(parts)


def _sample_places(table: TableTold) -> list[int]:
    """Which of first, second and last the sample's rows are."""
    return {0: [], 1: [0], 2: [0, 2]}.get(len(table.sample), [0, 1, 2])


def _kind(column: ColumnTold) -> str:
    return f"{column.sql_type} ({column.note})" if column.note else column.sql_type


class _Shown(NamedTuple):
    lines: list[str]
    row_count: int
    """Rows among them."""


def _fitting(header: Sequence[str], rows: Sequence[_Row]) -> _Shown:
    """A Markdown table of as many rows as there is room for."""
    lines = [row_line(header), "|" + "---|" * len(header)]
    left = MAX_TEXT_CHARACTERS - sum(map(len, lines))
    count = 0
    for row in rows:
        line = row_line(row)
        left -= len(line) + 1
        if left < 0 and count:
            break
        lines.append(line)
        count += 1
    return _Shown(lines, count)


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
