"""CSV and TSV: one line of text a row, "column: value; column: value", so that a row can be cited alone."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from graphrag_agent.retrieval.ingestion.parsing.decoding import decode_text
from graphrag_agent.retrieval.ingestion.parsing.parsed_document import ParsedDocument, Section

CELL_SEPARATOR = "; "
_DELIMITERS = ",;\t|"
_SNIFFED_ROWS = 100
_MOST_TITLE_ROWS = 5
"""Rows above the header (a caption, a date) that are looked over to find it."""
_DELIMITER_LINE = re.compile(r"sep=(.)\r?\n", re.IGNORECASE)
_ESCAPED_QUOTE = re.compile(r"""\\"[^",;\t|\r\n]""")
"""A quote that closes no cell; where quotes are doubled none stands so."""
_NUMBER = re.compile(r"[-+(]?[$€£¥₽]?\s?\d[\d\s.,:/%()eE+-]*")
_YEAR = re.compile(r"(?:19|20)\d\d")

Row = list[str]


class DelimitedRows(NamedTuple):
    """A delimited text, read row by row."""

    delimiter: str
    skipped: int
    """Lines before the first row: 1 where the first line declares the delimiter."""
    rows: Iterator[Row]


def parse_table(data: bytes, title: str) -> ParsedDocument:
    """The rows as lines (offsets refer to those); empty cells are left out, line ends inside cells become blanks."""
    text = "\n".join(table_lines(read_rows(decode_text(data)).rows))
    return ParsedDocument(text=text, title=title, source_type="csv", sections=(Section(0, len(text), kind="table"),))


def table_lines(cells: Iterable[Sequence[str]]) -> list[str]:
    """One line a row, each cell with the name of its column, if a header is found; blank rows are left out."""
    flattened = (_trimmed([" ".join(cell.split()) for cell in row]) for row in cells)
    rows = [row for row in flattened if row]
    header_at = find_header(rows)
    columns = column_names(rows, header_at)
    lines = [CELL_SEPARATOR.join(cell for cell in row if cell) for row in rows[: header_at or 0]]
    return lines + [_render_row(row, columns) for row in rows[0 if header_at is None else header_at + 1 :]]


def read_rows(text: str) -> DelimitedRows:
    """All rows of the text, those that are blank too."""
    declared = _DELIMITER_LINE.match(text)
    if declared:
        text = text[declared.end() :]
    delimiter = declared.group(1) if declared else _sniff_delimiter(text)
    return DelimitedRows(delimiter, 1 if declared else 0, _reader(text, delimiter))


def _trimmed(row: Row) -> Row:
    """Without the empty cells at its end, which say nothing about the table's width."""
    while row and not row[-1]:
        row.pop()
    return row


def _reader(text: str, delimiter: str) -> Iterator[Row]:
    escape = "\\" if _ESCAPED_QUOTE.search(text) else None
    return csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True, escapechar=escape)


def _sniff_delimiter(text: str) -> str:
    """The delimiter that gives most rows the same width above one; the comma where none does."""
    return max(_DELIMITERS, key=lambda delimiter: _regularity(text, delimiter))


def _regularity(text: str, delimiter: str) -> tuple[float, int]:
    widths = [len(row) for row in islice(_reader(text, delimiter), _SNIFFED_ROWS) if row]
    counts = Counter(width for width in widths if width > 1)
    if not counts:
        return 0.0, 0
    width, rows = max(counts.items(), key=lambda item: (item[1], item[0]))
    return rows / len(widths), width


def find_header(rows: Sequence[Row]) -> int | None:
    """Index of the row that names the columns; None when the table begins with data or has one row only."""
    width = Counter(len(row) for row in rows).most_common(1)[0][0] if rows else 0
    for index, row in enumerate(rows[:_MOST_TITLE_ROWS]):
        filled = sum(map(bool, row))
        if filled >= width or (filled == width - 1 and not row[0]):
            is_header = not any(_NUMBER.fullmatch(cell) and not _YEAR.fullmatch(cell) for cell in row)
            return index if is_header and index + 1 < len(rows) else None
    return None


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


def _render_row(row: Row, columns: Sequence[str]) -> str:
    return CELL_SEPARATOR.join(f"{name}: {cell}" for name, cell in zip(columns, row, strict=False) if cell)
