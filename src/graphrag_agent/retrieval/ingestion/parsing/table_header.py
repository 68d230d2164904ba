"""Which row of a table names its columns, and what they are called."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

_MOST_TITLE_ROWS = 5
"""Rows above the header (a caption, a date) that are looked over to find it."""
_MOST_CAPTION_CELLS = 2
"""More of them in a row are no caption."""
NUMBER = re.compile(r"[-+(]?[$€£¥₽]?\s?\d[\d\s.,:/%()eE+-]*")
_YEAR = re.compile(r"(?:19|20)\d\d")
_DAY = re.compile(r"(?:19|20)\d\d[-/.](?:0?[1-9]|1[0-2])(?![\d,])|\d{1,2}([/.-])\d{1,2}\1(?:\d\d){1,2}(?!\d)")
"""How the days and months begin that columns are called: 2024-05, 2024-05-01 00:00:00, 5/1/24."""

Row = list[str]


def trimmed(row: Row) -> Row:
    """Without the empty cells at its end, which say nothing about the table's width."""
    while row and not row[-1]:
        row.pop()
    return row


def used_columns(rows: Sequence[Row]) -> list[int]:
    """The places, from 0, at which some row says something."""
    used: set[int] = set()
    widest = 0
    for row in rows:
        widest = max(widest, len(row))
        if len(used) < widest:
            used.update(at for at, cell in enumerate(row) if cell)
    return sorted(used)


def only_columns(rows: Sequence[Row], places: Sequence[int]) -> list[Row]:
    """The rows without their other columns; `places` is sorted. A short row costs its own length, not the widest's."""
    return [[row[at] for at in places[: bisect_left(places, len(row))]] for row in rows]


def find_header(rows: Sequence[Row]) -> int | None:
    """Index of the row that names the columns; None when the table begins with data or has one row only."""
    widths = Counter(map(len, rows))
    width = max(widths, key=lambda width: (widths[width], width), default=0)  # two captions above two rows are no table
    for index, (row, below) in enumerate(pairwise(rows[: _MOST_TITLE_ROWS + 1])):
        filled = sum(map(bool, row))
        if filled >= width or (filled == width - 1 and not row[0]):
            if _names_columns(row, below):
                return index
            above = rows[index - 1] if index else []
            return index - 1 if _names_most(above, row, width) else None
        reaches_far = len(row) >= width or filled > _MOST_CAPTION_CELLS
        if reaches_far and below[0] and _names_most(row, below, width) and not _is_above_data(rows, index + 1):
            return index
    return None


def _names_most(row: Row, below: Row, width: int) -> bool:
    """Whether the row may be the header though it leaves columns without a name.

    Groups of columns above the header have one cell for two columns and more.
    """
    filled = sum(map(bool, row))
    return filled > 1 and 2 * filled > width and _names_columns(row, below)


def _is_above_data(rows: Sequence[Row], index: int) -> bool:
    """Whether the row is words and the one below it has numbers, so that it is the header."""
    row, below = rows[index], rows[index + 1] if index + 1 < len(rows) else []
    return _names_columns(row, below) and any(map(NUMBER.fullmatch, below))


def _names_columns(row: Row, below: Row) -> bool:
    """Whether no cell is data. A year names a column, and so does a day or a month above what is none."""
    return not any(
        NUMBER.fullmatch(cell)
        and not _YEAR.fullmatch(cell)
        and not (at and _DAY.match(cell) and any(below[at : at + 1]) and not _DAY.match(below[at]))
        for at, cell in enumerate(row)
    )


def column_names(rows: Sequence[Row], header_at: int | None) -> list[str]:
    """A name for each column of the widest row: the header's, "column 3" where it has none, "name (2)" for a second."""
    header = rows[header_at] if header_at is not None else []
    width = max(map(len, rows), default=0)
    names: list[str] = []
    seen: Counter[str] = Counter()
    for place in range(width):
        name = (header[place] if place < len(header) else "") or f"column {place + 1}"
        seen[name] += 1
        names.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return names
