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
from graphrag_agent.retrieval.ingestion.parsing.table_header import (
    Row,
    column_names,
    find_header,
    only_columns,
    trimmed,
    used_columns,
)
from graphrag_agent.retrieval.ingestion.parsing.table_splitting import rows_of, split_tables

CELL_SEPARATOR = "; "
_DELIMITERS = ",;\t|"
_SNIFFED_ROWS = 100
_SNIFFED_CHARACTERS = 1_000_000
_DELIMITER_LINE = re.compile(r"sep=(.)\r?\n", re.IGNORECASE)
_ESCAPED_QUOTE = re.compile(r"""\\"[^",;\t|\r\n]""")
"""A quote that closes no cell; where quotes are doubled none stands so."""


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
    """One line a row, each cell with the name of its column, if a header is found; blank rows are left out.

    A table that follows another one has a header of its own.
    """
    rows, gaps = list[Row](), set[int]()
    for row in cells:
        if flattened := trimmed([" ".join(cell.split()) for cell in row]):
            rows.append(flattened)
        else:
            gaps.add(len(rows))
    return [line for table in split_tables(rows, gaps) for line in _lines_of(rows_of(table, rows))]


def _lines_of(rows: Sequence[Row]) -> list[str]:
    rows = only_columns(rows, used_columns(rows))
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


def _reader(text: str, delimiter: str) -> Iterator[Row]:
    escape = "\\" if _ESCAPED_QUOTE.search(text) else None
    # the default of 131,072 characters a cell costs the whole file; how large a text may be is decided elsewhere
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))
    mended = text if escape else _with_lone_quotes_doubled(text, delimiter)
    return csv.reader(io.StringIO(mended, newline=""), delimiter=delimiter, skipinitialspace=True, escapechar=escape)


def _with_lone_quotes_doubled(text: str, delimiter: str) -> str:
    """The text with quotes that begin a cell and end none as characters of it: each would swallow rows up to the next.

    What looks like its end is no end where the cell goes on behind it.
    """
    begin, mark = rf'"(?<![^{re.escape(delimiter)}\r\n ]")', re.escape(delimiter)
    if not re.search(rf'{begin}(?:[^"\r\n]++|"")*+(?=[\r\n])', text):  # each is closed in its line
        return text
    quoted = re.compile(rf'{begin}((?:[^"]++|"")*+)("(?= *(?:{mark}|[\r\n]|\Z)))?')
    cell_end = re.compile(rf"{mark}|[\r\n]|\Z")
    parts, done, at = list[str](), 0, 0
    while found := quoted.search(text, at):
        at = found.end()
        if not found[2] and ("\n" in found[1] or "\r" in found[1]):
            end = cell_end.search(text, found.start())
            at = end.start() if end else at
            parts += [text[done : found.start()], '"', text[found.start() : at].replace('"', '""'), '"']
            done = at
    return "".join([*parts, text[done:]])


def _sniff_delimiter(text: str) -> str:
    """The delimiter that gives most rows the same width above one; the comma where none does."""
    return max(_DELIMITERS, key=lambda delimiter: _regularity(text, delimiter))


def _regularity(text: str, delimiter: str) -> tuple[float, int]:
    widths = [len(row) for row in islice(_reader(text[:_SNIFFED_CHARACTERS], delimiter), _SNIFFED_ROWS) if row]
    counts = Counter(width for width in widths if width > 1)
    if not counts:
        return 0.0, 0
    width, rows = max(counts.items(), key=lambda item: (item[1], item[0]))
    return rows / len(widths), width


def _render_row(row: Row, columns: Sequence[str]) -> str:
    return CELL_SEPARATOR.join(f"{name}: {cell}" for name, cell in zip(columns, row, strict=False) if cell)
