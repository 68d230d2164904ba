"""The tables of a CSV, TSV, XLSX, Parquet, JSON or JSON Lines file, as columns of text. `read_tables` is the entry.

It reads other people's files, so it runs in the process of `_table_worker`.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from graphrag_agent.errors import ParseError
from graphrag_agent.retrieval.ingestion.parsing.decoding import decode_text
from graphrag_agent.retrieval.ingestion.parsing.office_extraction import extract
from graphrag_agent.retrieval.ingestion.parsing.parquet import read_parquet_rows
from graphrag_agent.retrieval.ingestion.parsing.table import column_names, find_header, read_rows
from graphrag_agent.tools._record_tables import Record, read_json_lines_records, read_json_records
from graphrag_agent.tools._sheet_places import Place, sheet_places

MAX_COLUMNS = 500
MAX_CELLS = 4_000_000
"""About what the memory of the process holds as text."""
_MAX_NOTE_CHARACTERS = 200
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
    table = _table("", numbered, Place(1, 1), is_comma_likely=found.delimiter != ",")
    return [table] if table else []


def _read_workbook(data: bytes) -> list[RawTable]:
    if importlib.util.find_spec("kreuzberg") is None:
        raise ParseError("needs an extra; run pip install 'graphrag-agent[docs]'")
    pages = extract(".xlsx", data)["pages"]
    places = sheet_places(data)
    tables = []
    for page in pages:
        rows = page["rows"]
        found = places.get(page["number"])
        size = (len(rows), max(map(len, rows), default=0))
        place = found.first if found and found.size == size else None
        lost = found.lost_formulas if found else 0
        note = f"{lost} formulas have no stored result and are NULL" if lost else ""
        first_row = place.row if place else 1
        numbered = (_Numbered(number, row) for number, row in enumerate(rows, start=first_row))
        table = _table(" ".join(page["name"].split()), numbered, place, note=note)
        if table:
            tables.append(table)
    return tables


def _table(
    sheet: str, rows: Iterable[_Numbered], first: Place | None, *, note: str = "", is_comma_likely: bool = False
) -> RawTable | None:
    numbered, used = _filled(rows)
    cells = [row.cells for row in numbered]
    header_at = find_header(cells)
    titles = column_names(cells, header_at)
    data = numbered if header_at is None else numbered[header_at + 1 :]
    if not data:
        return None
    kept = range(min(len(titles), MAX_COLUMNS))
    left_out = len(titles) - len(kept)
    above = " ".join(" ".join(filter(None, row)) for row in cells[: header_at or 0])
    notes = (
        note,
        f"above the header: {' '.join(above.split())[:_MAX_NOTE_CHARACTERS]}" if above else "",
        "" if header_at is not None else "no row names the columns",
        _more_columns(left_out),
    )
    return RawTable(
        sheet=sheet,
        titles=[" ".join(titles[at].split()) for at in kept],
        columns=[[row.cells[at] if at < len(row.cells) else "" for row in data] for at in kept],
        places=[used[at] + (first.column if first else 1) for at in kept],
        rows=(data[0].number, data[-1].number) if first else None,
        notes=tuple(filter(None, notes)),
        is_comma_likely=is_comma_likely,
    )


def _filled(rows: Iterable[_Numbered]) -> tuple[list[_Numbered], list[int]]:
    """Rows that say something, without the columns that say nothing; and where the others were, from 0."""
    kept: list[_Numbered] = []
    used: set[int] = set()
    count = widest = 0
    for number, row in rows:
        cells = [cell.strip() for cell in row]
        while cells and not cells[-1]:
            cells.pop()
        count += len(cells)
        if count > MAX_CELLS:
            raise ParseError(_TOO_LARGE)
        if cells:
            kept.append(_Numbered(number, cells))
            widest = max(widest, len(cells))
            if len(used) < widest:
                used.update(at for at, cell in enumerate(cells) if cell)
    places = sorted(used)
    if len(places) * len(kept) > MAX_CELLS:
        raise ParseError(_TOO_LARGE)
    if places != list(range(len(places))):
        kept = [_Numbered(number, [cells[at] for at in places if at < len(cells)]) for number, cells in kept]
    return kept, places


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
