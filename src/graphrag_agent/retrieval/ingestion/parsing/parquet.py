"""Parquet: its columns, and its first rows as lines of "column: value", so that the file can be found.

Nobody reads a million rows; the tool that computes over tables reads the file itself (`read_parquet_rows`).
"""

from __future__ import annotations

import importlib.util
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from graphrag_agent.errors import ParseError
from graphrag_agent.retrieval.ingestion.parsing.parsed_document import ParsedDocument, Section
from graphrag_agent.retrieval.ingestion.parsing.table import CELL_SEPARATOR

SHOWN_ROWS = 100
SHOWN_COLUMNS = 200
_MEMORY = "400MB"


class ParquetRows(NamedTuple):
    """Rows of a Parquet file, each cell as text, None where it is NULL."""

    names: Sequence[str]
    types: Sequence[str]
    """In DuckDB's words."""
    row_count: int
    """Of the whole file."""
    rows: Sequence[Sequence[str | None]]
    left_out: int = 0
    """Columns that are not here."""


def parse_parquet(data: bytes, title: str) -> ParsedDocument:
    """A line with the columns and the number of rows, then the first rows as one line each."""
    found = read_parquet_rows(data, max_rows=SHOWN_ROWS, max_columns=SHOWN_COLUMNS)
    more = f" and {found.left_out} more" if found.left_out else ""
    columns = ", ".join(f"{_flat(name)} ({kind})" for name, kind in zip(found.names, found.types, strict=True))
    head = f"{found.row_count:,} rows. Columns: {columns}{more}"
    lines = [
        CELL_SEPARATOR.join(
            f"{_flat(name)}: {_flat(cell)}" for name, cell in zip(found.names, row, strict=True) if cell
        )
        for row in found.rows
    ]
    text = "\n".join([head, *filter(None, lines)])
    sections = [Section(0, len(head))]
    if len(text) > len(head):
        sections.append(Section(len(head) + 1, len(text), kind="table"))
    return ParsedDocument(text=text, title=title, source_type="parquet", sections=tuple(sections))


def read_parquet_rows(
    data: bytes, *, max_columns: int, max_rows: int | None = None, max_cells: int | None = None
) -> ParquetRows:
    """The first rows and columns. A hostile file is read by native code, so call it in a worker process only.

    Raises ParseError for a damaged file, for one whose rows have more cells than `max_cells`, and without DuckDB.
    """
    if importlib.util.find_spec("duckdb") is None:
        raise ParseError("needs an extra; run pip install 'graphrag-agent[tools]'")
    import duckdb

    with _as_file(data) as path, duckdb.connect(":memory:") as connection:
        connection.execute("SET temp_directory = ''")
        connection.execute(f"SET memory_limit = '{_MEMORY}'")
        connection.execute("SET threads = 1")
        try:
            described = connection.execute("SELECT * FROM read_parquet(?) LIMIT 0", [path]).description or []
            names = [column[0] for column in described[:max_columns]]
            counted = connection.execute("SELECT count(*) FROM read_parquet(?)", [path]).fetchone()
            row_count = counted[0] if counted else 0
            if max_cells is not None and row_count * len(names) > max_cells:
                raise ParseError(f"has more than {max_cells:,} cells; split it into smaller files")
            chosen = ", ".join(f"CAST({_quoted(name)} AS VARCHAR)" for name in names)
            rows = connection.execute(f"SELECT {chosen} FROM read_parquet(?) LIMIT ?", [path, max_rows])  # noqa: S608
            return ParquetRows(
                names,
                [str(column[1]) for column in described[:max_columns]],
                row_count,
                rows.fetchall(),
                len(described) - len(names),
            )
        except duckdb.OutOfMemoryException as error:
            raise ParseError(f"needs more than {_MEMORY} of memory; split it into smaller files") from error
        except duckdb.Error as error:
            told = str(error).partition("\n")[0].replace(f" '{path}'", "").replace(path, "it")[:160]
            raise ParseError(f"damaged or not a parquet file ({told}); write it anew") from error


@contextmanager
def _as_file(data: bytes) -> Iterator[str]:
    """A path to the bytes; in memory where the system can."""
    if hasattr(os, "memfd_create"):
        handle = os.memfd_create("parquet")
        try:
            with os.fdopen(os.dup(handle), "wb") as file:
                file.write(data)
            yield f"/proc/self/fd/{handle}"
        finally:
            os.close(handle)
    else:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "data.parquet")
            path.write_bytes(data)
            yield str(path)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _flat(text: str) -> str:
    return " ".join(text.replace("\0", "").split())
