"""What the process of `_table_worker` is asked, and what it answers.

Both are JSON. The answer is checked, as a hostile file may have taken the process over.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, model_validator

from graphrag_agent.tools._query_result import MAX_CELL_CHARACTERS

QUERY_SECONDS = 10.0
CALL_SECONDS = 25.0
"""For reading the files and the query."""
MAX_RESULT_ROWS, MAX_RESULT_COLUMNS = 50, 40
"""Of a result; more would be read by nobody."""
_MAX_VALUE_CHARACTERS = MAX_CELL_CHARACTERS + 50
"""With what a cut value says of its length."""
_Name = Field(max_length=200)
_Text = Annotated[str, Field(max_length=MAX_CELL_CHARACTERS)]
_Cell = Annotated[str, Field(max_length=_MAX_VALUE_CHARACTERS)] | None
_Number = Annotated[int, Field(ge=1, le=10_000_000)]
"""From 1, in the file."""


class _Told(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


_Checked = TypeVar("_Checked", bound=_Told)


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
    """Names of tables that are in none of the files, for a message."""
    query_seconds: float = QUERY_SECONDS


class ColumnTold(_Told):
    """A column in SQL, and in the file."""

    name: str = _Name
    title: str = Field(max_length=MAX_CELL_CHARACTERS)
    sql_type: str = Field(max_length=40)
    note: str = Field(max_length=MAX_CELL_CHARACTERS)
    place: _Number


class TableTold(_Told):
    """A table, and where it stands in its file."""

    name: str = _Name
    file: int = Field(ge=0)
    """Which of the job's files."""
    sheet: str = Field(max_length=MAX_CELL_CHARACTERS)
    columns: list[ColumnTold] = Field(min_length=1, max_length=500)
    row_count: int = Field(ge=0, le=10_000_000)
    rows: tuple[_Number, _Number] | None = Field(strict=False)
    """First and last row of its data, or record, in the file; None where that can't be told."""
    notes: list[_Text] = Field(max_length=20)
    sample: list[list[_Cell]] = Field(max_length=3)
    """The first two rows and the last."""

    @model_validator(mode="after")
    def _has_whole_rows(self) -> Self:
        return _checked(self, all(len(row) == len(self.columns) for row in self.sample))


class ReadTold(_Told):
    """A table that the query reads, and which of its columns."""

    table: int = Field(ge=0)
    columns: list[int] = Field(min_length=1, max_length=500)


class ResultTold(_Told):
    """What the query gave; `has_more` rows than are here, and `left_out` columns."""

    sql: str = Field(max_length=20_000)
    """As it was checked."""
    read: list[ReadTold] = Field(max_length=2_000)
    columns: list[_Text] = Field(min_length=1, max_length=MAX_RESULT_COLUMNS)
    rows: list[list[_Cell]] = Field(max_length=MAX_RESULT_ROWS)
    has_more: bool
    left_out: int = Field(default=0, ge=0, le=100_000)

    @model_validator(mode="after")
    def _has_whole_rows(self) -> Self:
        return _checked(self, all(len(row) == len(self.columns) for row in self.rows))


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

    @model_validator(mode="after")
    def _reads_what_is_there(self) -> Self:
        widths = [len(table.columns) for table in self.tables]
        read = self.result.read if self.result else []
        return _checked(
            self,
            all(told.table < len(widths) and all(0 <= at < widths[told.table] for at in told.columns) for told in read),
        )


def read_answer(line: bytes, file_count: int) -> TableAnswer:
    """The answer of a process that was asked about so many files. Raises ValueError where it is none."""
    answer = TableAnswer.model_validate_json(line)
    files = [table.file for table in answer.tables] + [told.file for told in answer.problems if told.file is not None]
    return _checked(answer, all(at < file_count for at in files))


def _checked(told: _Checked, is_sound: bool) -> _Checked:
    if not is_sound:
        raise ValueError("a number that stands for nothing, or a row of another width")
    return told


def cut(text: str, most: int = MAX_CELL_CHARACTERS) -> str:
    """At most so many characters, and a mark where some are missing."""
    return text if len(text) <= most else text[: most - 1] + "…"
