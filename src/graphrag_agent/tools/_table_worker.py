"""The program of a process that loads files into DuckDB and runs one query over them.

A request's name is a `TableJob`, its bytes are the job's files one behind the other; the answer is a `TableAnswer`. It
may write no file, has limits of time and memory, and is killed after its answer, so nothing of one call is there for
the next.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from graphrag_agent.errors import ParseError, ToolArgumentError
from graphrag_agent.retrieval.ingestion.workers.program import main
from graphrag_agent.tools._query_result import value_text
from graphrag_agent.tools._sql_guard import CheckedQuery
from graphrag_agent.tools._table_answer import (
    CALL_SECONDS,
    MAX_RESULT_COLUMNS,
    MAX_RESULT_ROWS,
    ColumnTold,
    ProblemTold,
    ReadTold,
    ResultTold,
    TableAnswer,
    TableJob,
    TableTold,
    cut,
)
from graphrag_agent.tools._table_names import SHEET_SEPARATOR, unique_names
from graphrag_agent.tools._table_query import check, reads_of
from graphrag_agent.tools._table_reading import RawTable, read_tables
from graphrag_agent.tools._table_types import infer_types

MAX_MEMORY_BYTES = 2_000_000_000
DUCKDB_MEMORY = "500MB"
MAX_TABLES = 100
"""Of one file."""
_BEFORE_LOADING = (
    "SET temp_directory = ''",
    f"SET memory_limit = '{DUCKDB_MEMORY}'",
    "SET threads = 2",
    "SET pandas_analyze_sample = 0",  # texts stay texts
    "SET TimeZone = 'UTC'",
)
_BEFORE_THE_QUERY = (
    "SET enable_external_access = false",
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET allow_community_extensions = false",
    "SET python_enable_replacements = false",
    "SET lock_configuration = true",
)


def answer_job(
    job: TableJob, blobs: Sequence[bytes], *, before_query: Callable[[], None] = lambda: None
) -> TableAnswer:
    """The tables of the files, and the query's result where there is a query; `before_query` comes between the two."""
    import duckdb

    connection = duckdb.connect(":memory:")
    try:
        _set_all(connection, _BEFORE_LOADING)
        tables: list[TableTold] = []
        problems: list[ProblemTold] = []
        for at, (file, data) in enumerate(zip(job.files, blobs, strict=True)):
            try:
                tables += _load(connection, at, file.name, read_tables(file.suffix, data))
            except ParseError as error:
                problems.append(ProblemTold(kind="file", text=cut(str(error)), file=at))
            except (MemoryError, duckdb.OutOfMemoryException):
                problems.append(ProblemTold(kind="memory", text="needs too much memory; split it", file=at))
            except Exception as error:  # whatever is odd about a file, the others are read
                told = cut(f"can't be loaded ({type(error).__name__}); save it anew")
                problems.append(ProblemTold(kind="file", text=told, file=at))
        _set_all(connection, _BEFORE_THE_QUERY)
        before_query()
        if job.sql is None or problems:
            return TableAnswer(tables=tables, problems=problems)
        try:
            query = check(job.sql, tables, job.others)
        except ToolArgumentError as error:
            return TableAnswer(tables=[], problems=[ProblemTold(kind="query", text=cut(str(error), 1_800))])
        found = _run(connection, query, reads_of(query, tables), job.query_seconds)
        if isinstance(found, ProblemTold):
            return TableAnswer(tables=tables, problems=[found])
        return TableAnswer(tables=tables, problems=[], result=found)
    finally:
        connection.close()


def _set_all(connection: Any, settings: Sequence[str]) -> None:
    for setting in settings:
        connection.execute(setting)


def _load(connection: Any, file: int, base: str, raw_tables: Sequence[RawTable]) -> list[TableTold]:
    first, *others = raw_tables[:MAX_TABLES]
    if left_out := len(raw_tables) - 1 - len(others):
        note = f"{left_out} more table{' of this file is' if left_out == 1 else 's of this file are'} left out"
        first = replace(first, notes=(*first.notes, note))
    names = [base]
    if others:
        sheets = unique_names([raw.sheet for raw in (first, *others)], "sheet")
        names = [f"{base}{SHEET_SEPARATOR}{sheet.strip('_')}" for sheet in sheets]
    return [_load_table(connection, file, name, raw) for name, raw in zip(names, (first, *others), strict=True)]


def _load_table(connection: Any, file: int, name: str, raw: RawTable) -> TableTold:
    import numpy

    typed = infer_types(raw.columns, texts=raw.texts, is_comma_likely=raw.is_comma_likely)
    columns = unique_names(raw.titles, "unnamed")
    arrays = {f"c{at}": numpy.array(column.cells, dtype=object) for at, column in enumerate(typed)}
    casts = [
        f'CAST(c{at} AS {column.sql_type}) AS "{title}"'
        for at, (title, column) in enumerate(zip(columns, typed, strict=True))
    ]
    connection.register("loaded", arrays)
    connection.execute(f'CREATE TABLE "{name}" AS SELECT {", ".join(casts)} FROM loaded')  # noqa: S608  # our names
    connection.unregister("loaded")
    count = len(typed[0].cells)
    places = (0, 1, count - 1)
    sample = connection.execute(f'SELECT * FROM "{name}" WHERE rowid IN {places} ORDER BY rowid').fetchall()  # noqa: S608
    return TableTold(
        name=name,
        file=file,
        sheet=cut(raw.sheet),
        columns=[
            ColumnTold(name=title, title=cut(told), sql_type=column.sql_type, note=cut(column.note), place=place)
            for title, told, column, place in zip(columns, raw.titles, typed, raw.places, strict=True)
        ],
        row_count=count,
        rows=raw.rows,
        notes=[cut(note) for note in raw.notes],
        sample=[_texts(row) for row in sample],
    )


def _run(connection: Any, query: CheckedQuery, read: list[ReadTold], seconds: float) -> ResultTold | ProblemTold:
    import duckdb

    timer = threading.Timer(seconds, connection.interrupt)
    timer.daemon = True
    timer.start()
    try:
        connection.execute(query.sql)
        description = connection.description or ()
        columns, types = [cut(str(column[0])) for column in description], [str(column[1]) for column in description]
        if any("INTERVAL" in kind for kind in types):
            connection.execute(_with_intervals_as_text(query.sql, types))
        rows = connection.fetchmany(MAX_RESULT_ROWS + 1)
    except duckdb.InterruptException:
        return ProblemTold(kind="time", text=f"ran longer than {seconds:g} seconds")
    except (MemoryError, duckdb.OutOfMemoryException):
        return ProblemTold(kind="memory", text=f"needs more than {DUCKDB_MEMORY} of memory")
    except duckdb.Error as error:
        return ProblemTold(kind="sql", text=cut(_message(error), 1_500))
    finally:
        timer.cancel()
    return ResultTold(
        sql=query.shown,
        read=read,
        columns=columns[:MAX_RESULT_COLUMNS],
        rows=[_texts(row[:MAX_RESULT_COLUMNS]) for row in rows[:MAX_RESULT_ROWS]],
        has_more=len(rows) > MAX_RESULT_ROWS,
        left_out=max(len(columns) - MAX_RESULT_COLUMNS, 0),
    )


def _with_intervals_as_text(sql: str, types: Sequence[str]) -> str:
    """Python has no months and years: a year would come as 360 days."""
    names = [f"c{at}" for at in range(len(types))]
    shown = [
        f"CAST({name} AS VARCHAR)" if "INTERVAL" in kind else name for name, kind in zip(names, types, strict=True)
    ]
    return f"SELECT {', '.join(shown)} FROM ({sql}) AS found({', '.join(names)})"  # noqa: S608  # it was checked


def _message(error: Exception) -> str:
    """Without the query, which is repeated with a mark below the place."""
    return " ".join(str(error).partition("\n\nLINE ")[0].split())


def _texts(row: Sequence[Any]) -> list[str | None]:
    # the 16th digit of a sum is noise
    return [value_text(f"{value:.15g}" if isinstance(value, float) else value) for value in row]


def _forbid_files() -> None:
    """No file can be written from here on; a Parquet file is handed over as one in memory before."""
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def _answer_request(told: str, data: bytes) -> bytes:
    job = TableJob.model_validate_json(told)
    blobs, start = [], 0
    for file in job.files:
        blobs.append(data[start : start + file.size])
        start += file.size
    return answer_job(job, blobs, before_query=_forbid_files).model_dump_json().encode()


if __name__ == "__main__":
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # numpy would reserve memory for each core
    main(_answer_request, memory_bytes=MAX_MEMORY_BYTES, seconds=CALL_SECONDS)
