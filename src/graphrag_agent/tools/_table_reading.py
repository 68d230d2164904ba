"""The tables of a CSV, TSV, XLSX, Parquet, JSON or JSON Lines file, as columns of text. `read_tables` is the entry.

It reads other people's files, so it runs in the process of `_table_worker`.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from graphrag_agent.errors import ParseError
from graphrag_agent.retrieval.ingestion.parsing.decoding import decode_text
from graphrag_agent.retrieval.ingestion.parsing.office_extraction import extract
from graphrag_agent.retrieval.ingestion.parsing.parquet import read_parquet_rows
from graphrag_agent.retrieval.ingestion.parsing.table import read_rows
from graphrag_agent.retrieval.ingestion.parsing.table_header import (
    column_names,
    find_header,
    only_columns,
    trimmed,
    used_columns,
)
from graphrag_agent.retrieval.ingestion.parsing.table_splitting import rows_of, split_tables
from graphrag_agent.tools._record_tables import Record, read_json_lines_records, read_json_records
from graphrag_agent.tools._sheet_places import Place, sheet_places

MAX_COLUMNS = 500
MAX_CELLS = 4_000_000
"""About what the memory of the process holds as text."""
_MAX_NOTE_CHARACTERS = 200
_NO_HEADER = "no row names the columns"
_LONE_ROW = "no row names the columns; if this one does, the table has no data"
_TOO_LARGE = f"has more than {MAX_CELLS:,} cells; split it into smaller files"


@dataclass(frozen=True, slots=True)
class RawTable:
    """A table as it stands in the file; the cells of a column are trimmed, "" for none."""

    sheet: str
    """Of a file with several tables; else empty."""
    titles: Sequence[str]
    columns: Sequence[Sequence[str]]
    places: Sequence[int]
    """Each column's place in the file, from 1."""
    rows: tuple[int, int] | None
    """First and last row of the data in the file, from 1, or its records; None where that can't be told."""
    notes: tuple[str, ...] = ()
    texts: frozenset[int] = frozenset()
    """Columns that the file says are text."""
    is_comma_likely: bool = False
    """As `infer_types` wants to know it."""


class _Numbered(NamedTuple):
    number: int
    cells: list[str]


def read_tables(suffix: str, data: bytes) -> list[RawTable]:
    """The file's tables that have a row. Raises ParseError with the reason and the remedy."""
    try:
        tables = READERS[suffix](data)
    except (ParseError, MemoryError):
        raise
    except Exception as error:  # a damaged file can raise anything
        raise ParseError(f"damaged ({type(error).__name__}: {error})"[:_MAX_NOTE_CHARACTERS]) from error
    if not tables:
        raise ParseError("holds no table")
    return tables


def _read_delimited(data: bytes) -> list[RawTable]:
    found = read_rows(decode_text(data).replace("\0", ""))
    numbered = (_Numbered(number, row) for number, row in enumerate(found.rows, start=1 + found.skipped))
    return _tables("", numbered, Place(1, 1), is_comma_likely=found.delimiter != ",")


def _read_workbook(data: bytes) -> list[RawTable]:
    if importlib.util.find_spec("kreuzberg") is None:
        raise ParseError("needs an extra; run pip install 'graphrag-agent[docs]'")
    pages = extract(".xlsx", data)["pages"]
    places = sheet_places(data)
    tables = []
    for page in pages:
        rows = page["rows"]
        found = places.get(page["name"])
        size = (len(rows), max(map(len, rows), default=0))
        place = found.first if found and found.size == size else None
        first_row = place.row if place else 1
        numbered = (_Numbered(number, row) for number, row in enumerate(rows, start=first_row))
        for table in _tables(" ".join(page["name"].split()), numbered, place):
            lost = _lost_note(found.lost_formulas, table.rows) if found else ""
            merged = _merged_note(found.merged_rows, table.rows) if found else ""
            tables.append(replace(table, notes=tuple(filter(None, [lost, *table.notes, merged]))))
    return tables


def _lost_note(formulas: Iterable[int], rows: tuple[int, int] | None) -> str:
    count = sum(rows is None or rows[0] <= row <= rows[1] for row in formulas)
    return f"{count} formulas have no stored result and are NULL" if count else ""


def _merged_note(merged: Iterable[tuple[int, int]], rows: tuple[int, int] | None) -> str:
    """What a sum by group must know: a merged cell's other rows are empty in the file."""
    count = sum(rows is None or (bottom > rows[0] and top <= rows[1]) for top, bottom in merged)
    return (
        f"merged over several rows: {count}; only the first row of each has the value, the others NULL" if count else ""
    )


def _tables(
    sheet: str, rows: Iterable[_Numbered], first: Place | None, *, is_comma_likely: bool = False
) -> list[RawTable]:
    """The tables of a sheet, one below the other."""
    numbered = _filled(rows)
    gaps = {at for at in range(1, len(numbered)) if numbered[at].number > numbered[at - 1].number + 1}
    tables = []
    cells = 0
    for part in split_tables([row.cells for row in numbered], gaps):
        table = _table(sheet, rows_of(part, numbered), first, is_comma_likely=is_comma_likely)
        if table:
            cells += len(table.columns) * len(table.columns[0])
            if cells > MAX_CELLS:  # each table is filled up to its widest row
                raise ParseError(_TOO_LARGE)
            tables.append(table)
    return tables


def _table(sheet: str, numbered: list[_Numbered], first: Place | None, *, is_comma_likely: bool) -> RawTable | None:
    used = used_columns([row.cells for row in numbered])
    if len(used) * len(numbered) > MAX_CELLS:
        raise ParseError(_TOO_LARGE)
    cells = only_columns([row.cells for row in numbered], used)
    header_at = find_header(cells)
    titles = column_names(cells, header_at)
    data_from = 0 if header_at is None else header_at + 1
    data = cells[data_from:]
    if not data:
        return None
    kept = range(min(len(titles), MAX_COLUMNS))
    left_out = len(titles) - len(kept)
    above = " ".join(" ".join(filter(None, row)) for row in cells[: header_at or 0])
    notes = (
        f"above the header: {' '.join(above.split())[:_MAX_NOTE_CHARACTERS]}" if above else "",
        "" if header_at is not None else _NO_HEADER if len(data) > 1 else _LONE_ROW,
        _more_columns(left_out),
    )
    return RawTable(
        sheet=sheet,
        titles=[" ".join(titles[at].split()) for at in kept],
        columns=[[row[at] if at < len(row) else "" for row in data] for at in kept],
        places=[used[at] + (first.column if first else 1) for at in kept],
        rows=(numbered[data_from].number, numbered[-1].number) if first else None,
        notes=tuple(filter(None, notes)),
        is_comma_likely=is_comma_likely,
    )


def _filled(rows: Iterable[_Numbered]) -> list[_Numbered]:
    """The rows that say something."""
    kept: list[_Numbered] = []
    count = 0
    for number, row in rows:
        cells = trimmed([cell.strip() for cell in row])
        count += len(cells)
        if count > MAX_CELLS:
            raise ParseError(_TOO_LARGE)
        if cells:
            kept.append(_Numbered(number, cells))
    return kept


def _record_reader(read: Callable[[bytes], list[tuple[str, list[Record]]]]) -> Callable[[bytes], list[RawTable]]:
    def read_records(data: bytes) -> list[RawTable]:
        return [_records(name, records) for name, records in read(data) if any(records)]  # {} has no column

    return read_records


def _records(name: str, records: Sequence[Record]) -> RawTable:
    titles = list(dict.fromkeys(key for record in records for key in record))
    if len(titles) * len(records) > MAX_CELLS:
        raise ParseError(_TOO_LARGE)
    kept = titles[:MAX_COLUMNS]
    left_out = len(titles) - len(kept)
    return RawTable(
        sheet=name,
        titles=kept,
        columns=[[record.get(title, "") for record in records] for title in kept],
        places=range(1, len(kept) + 1),
        rows=(1, len(records)),
        notes=tuple(filter(None, [_more_columns(left_out)])),
        texts=frozenset(
            at for at, title in enumerate(kept) if any(type(record.get(title)) is str for record in records)
        ),
    )


def _read_parquet(data: bytes) -> list[RawTable]:
    found = read_parquet_rows(data, max_columns=MAX_COLUMNS, max_cells=MAX_CELLS)
    if not found.rows:
        return []
    return [
        RawTable(
            sheet="",
            titles=found.names,
            columns=[
                [(cell or "").replace("\0", "").strip() for cell in column] for column in zip(*found.rows, strict=True)
            ],
            places=range(1, len(found.names) + 1),
            rows=(1, found.row_count),
            texts=frozenset(at for at, kind in enumerate(found.types) if kind == "VARCHAR"),
            notes=tuple(filter(None, [_more_columns(found.left_out)])),
        )
    ]


def _more_columns(count: int) -> str:
    return f"{count} more column{' is' if count == 1 else 's are'} left out" if count else ""


READERS: Mapping[str, Callable[[bytes], list[RawTable]]] = {
    ".csv": _read_delimited,
    ".tsv": _read_delimited,
    ".xlsx": _read_workbook,
    ".json": _record_reader(read_json_records),
    ".parquet": _read_parquet,
    ".jsonl": _record_reader(read_json_lines_records),
}
"""By the suffix in lower case."""
