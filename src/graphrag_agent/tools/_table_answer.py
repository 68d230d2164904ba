"""What the process of `_table_worker` is asked, and what it answers.

Both are JSON. The answer is checked, as a hostile file may have taken the process over.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

MAX_RESULT_ROWS = 100
"""Rows that a result brings; more would be read by nobody."""
MAX_CELL_CHARACTERS = 300
_Name = Field(max_length=200)
_Cell = str | None


class _Told(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class FileAsked(_Told):
    """A file whose bytes follow, and the name that its table gets."""

    name: str
    suffix: str
    size: int


class TableJob(_Told):
    """Files to load, and a query over them; without one their tables are described."""

    files: list[FileAsked]
    sql: str | None = None
    others: list[str] = []
    """Names of tables that are in no of the files, for a message."""
    query_seconds: float = 10.0


class ColumnTold(_Told):
    """A column in SQL, and in the file."""

    name: str = _Name
    title: str = Field(max_length=MAX_CELL_CHARACTERS)
    sql_type: str = Field(max_length=40)
    note: str = Field(max_length=MAX_CELL_CHARACTERS)
    place: int = Field(ge=1, le=100_000)
    """From 1, in the file."""


class TableTold(_Told):
    """A table, and where it stands in its file."""

    name: str = _Name
    file: int = Field(ge=0)
    """Which of the job's files."""
    sheet: str = Field(max_length=MAX_CELL_CHARACTERS)
    columns: list[ColumnTold] = Field(min_length=1, max_length=500)
    row_count: int = Field(ge=0)
    rows: tuple[int, int] | None = Field(strict=False)
    """First and last row of its data, or record, in the file; None where that can't be told."""
    notes: list[str] = Field(max_length=20)
    sample: list[list[_Cell]] = Field(max_length=3)
    """The first two rows and the last."""


class ReadTold(_Told):
    """A table that the query reads, and which of its columns."""

    table: int = Field(ge=0)
    columns: list[int] = Field(min_length=1, max_length=500)


class ResultTold(_Told):
    """What the query gave; `has_more` rows than are here."""

    sql: str = Field(max_length=20_000)
    """As it was checked."""
    read: list[ReadTold] = Field(max_length=2_000)
    columns: list[str]
    rows: list[list[_Cell]] = Field(max_length=MAX_RESULT_ROWS)
    has_more: bool


class ProblemTold(_Told):
    """Why there is no result: the query was refused, or failed at DuckDB; or a file can't be read, `file`."""

    kind: Literal["query", "sql", "time", "memory", "file"]
    text: str = Field(max_length=2_000)
    file: int | None = Field(default=None, ge=0)


class TableAnswer(_Told):
    """The tables of the files that could be read, and the query's result or what went wrong."""

    tables: list[TableTold] = Field(max_length=2_000)
    problems: list[ProblemTold] = Field(max_length=200)
    result: ResultTold | None = None


def cut(text: str, most: int = MAX_CELL_CHARACTERS) -> str:
    """At most so many characters, and a mark where some are missing."""
    return text if len(text) <= most else text[: most - 1] + "…"
