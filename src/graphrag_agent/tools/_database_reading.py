"""Runs a checked query on a database that is open for reading only, and stops it in time.

Both readers block: call them in a thread, and `Stop.now` from elsewhere when nobody waits any longer.
"""

from __future__ import annotations

import json
import os
import re
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

from graphrag_agent.errors import ToolArgumentError, ToolFailedError
from graphrag_agent.tools import _sqlite_program
from graphrag_agent.tools._database_schema import TableInfo, read_tables
from graphrag_agent.tools._query_result import MAX_CELL_CHARACTERS, Rows, bytes_text, value_text
from graphrag_agent.tools._sql_vocabulary import Dialect

PROCESS_SECONDS = 2.0
"""A program of ours needs 0.1 s to start and to end; this is for a busy machine."""

STOP_SECONDS = 0.1
LOCK_SECONDS = 2.0
CONNECT_SECONDS = 5
INSPECTION_SECONDS = 10.0
"""Of one statement that reads the schema."""

FETCHED_ROWS = 4
"""At once; few, as each may be large."""

_VALUE = re.compile(r'"(.*)"|(?<!\w)[+-]?\d[\w.:+-]*', re.DOTALL)
"""Of an error's text: what is quoted, from the first mark to the last as a value may have some, and numbers."""

PARAMETERS = (
    *("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"),
    *("search_path", "standard_conforming_strings"),
)


@dataclass(frozen=True)
class Reading:
    """A checked query and what it may cost."""

    sql: str
    tables: Mapping[str, Sequence[str]]
    """Visible table -> visible columns, which SQLite checks once more."""
    seconds: float
    max_rows: int
    max_characters: int
    """About so many are fetched; the row that goes beyond them is the last."""


class Stop:
    """Ends a reading from another thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._end: Callable[[], object] | None = None
        self._is_asked = False

    @contextmanager
    def ends(self, end: Callable[[], object]) -> Iterator[None]:
        """What runs inside is ended by `end`, and never after it. Raises ToolFailedError where it is too late."""
        with self._lock:
            self.check()
            self._end = end
        try:
            yield
        finally:
            with self._lock:  # nothing is left to end from here on
                self._end = None

    def check(self) -> None:
        """Raises ToolFailedError where it is too late to begin."""
        if self._is_asked:
            raise ToolFailedError("the query was given up before it ran", retryable=True)

    def now(self) -> None:
        """End it; this blocks until it is over. Asked once, a server may not have begun the query yet, and miss it."""
        while True:
            with self._lock:
                self._is_asked = True
                if self._end is None:
                    return
                with suppress(Exception):  # its connection is gone: the reading ends by itself
                    self._end()
            time.sleep(STOP_SECONDS)


class Reader(Protocol):
    """Reads one database."""

    dialect: Dialect

    def inspected(self, schemas: Sequence[str], is_needed: Callable[[str], bool], stop: Stop) -> tuple[TableInfo, ...]:
        """All its tables and views, whoever may see them; of very many, those that are needed have columns.

        Raises SQLAlchemyError where it can't be reached.
        """
        ...

    def read(self, reading: Reading, stop: Stop) -> Rows:
        """The rows. Raises ToolArgumentError for SQL that the database refuses, ToolFailedError for the rest."""
        ...


class SqliteReader:
    """Each query in a process of its own, with the file opened for reading only."""

    dialect: Dialect = "sqlite"

    def __init__(self, file: Path) -> None:
        self.uri = f"file:{quote(str(file))}?mode=ro"

    def inspected(self, schemas: Sequence[str], is_needed: Callable[[str], bool], stop: Stop) -> tuple[TableInfo, ...]:
        """All its tables and views; SQLite has no schemas. Of the file our process reads the schema alone."""
        from sqlalchemy import create_engine, inspect
        from sqlalchemy.pool import NullPool

        engine = create_engine("sqlite://", creator=lambda: sqlite3.connect(self.uri, uri=True), poolclass=NullPool)
        with engine.connect() as connection, stop.ends(_driver_of(connection).interrupt):
            return read_tables(inspect(connection), [None], is_needed, written="main", one_by_one=True)

    def read(self, reading: Reading, stop: Stop) -> Rows:
        request = {
            "uri": self.uri,
            "sql": reading.sql,
            "tables": {name: list(columns) for name, columns in reading.tables.items()},
            "seconds": reading.seconds,
            "max_rows": reading.max_rows,
            "max_characters": reading.max_characters,
            "max_cell": MAX_CELL_CHARACTERS,
        }
        command = [sys.executable, "-I", "-S", "-B", str(Path(_sqlite_program.__file__))]
        process = subprocess.Popen(  # noqa: S603  # our own program; the query goes in as data
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={}, text=True
        )
        try:
            with stop.ends(process.kill):
                output, _ = process.communicate(json.dumps(request), timeout=reading.seconds + PROCESS_SECONDS)
        except subprocess.TimeoutExpired:
            raise _too_slow(reading.seconds) from None
        finally:
            process.kill()
            process.communicate()
        return _rows_of(_answer(output, process.returncode), reading.seconds)


def _answer(output: str, exit_code: int) -> dict[str, Any]:
    try:
        answer: dict[str, Any] = json.loads(output)
    except ValueError:  # a signal ended it, which its limits send; or it failed by itself
        answer = {"error": "memory" if exit_code < 0 else "program", "message": f"exit code {exit_code}"}
    return answer


def _rows_of(answer: dict[str, Any], seconds: float) -> Rows:
    match answer.get("error"):
        case None:
            shown = [[_sqlite_text(value) for value in row] for row in answer["rows"]]
            return Rows(answer["columns"], shown, answer["is_cut"])
        case "time":
            raise _too_slow(seconds)
        case "denied":
            raise ToolArgumentError(
                "SQLite refused: the query uses a table, column or function that is not open here; keep to the schema"
            )
        case "unreachable":
            raise ToolFailedError("the database file can't be read now; say so, or try once more", retryable=True)
        case "program":
            raise ToolFailedError(f"the program that reads the database failed ({answer['message']}); say so")
        case "memory":
            raise ToolFailedError(
                "the query needed too much memory or time and was stopped; filter earlier, join on keys, select less"
            )
        case _:
            raise ToolArgumentError(f"SQLite: {answer['message']}; mend the query by the schema")


def _sqlite_text(value: Any) -> str | None:
    if not isinstance(value, dict):
        return value_text(value)
    if "bytes" in value:
        return bytes_text(value["hex"], value["bytes"])
    return f"{value['text']}… ({value['characters']:,} characters)"


def _too_slow(seconds: float) -> ToolFailedError:
    return ToolFailedError(
        f"the query was stopped after {seconds:g} s; join on keys, filter earlier, end a recursion, or aggregate less"
    )


class PostgresReader:
    """Each query in a read-only transaction of a connection of its own; the server stops what takes too long.

    One value may have a gigabyte: neither the server nor its client can limit that.
    """

    dialect: Dialect = "postgres"

    def __init__(self, engine: Any) -> None:
        self.engine = engine

    def inspected(self, schemas: Sequence[str], is_needed: Callable[[str], bool], stop: Stop) -> tuple[TableInfo, ...]:
        """The tables and views of the schemas."""
        from sqlalchemy import inspect

        with self.engine.connect() as connection:
            connection = connection.execution_options(postgresql_readonly=True)
            with connection.begin(), stop.ends(_canceller(connection)):
                _limit_transaction(connection, INSPECTION_SECONDS)
                return read_tables(inspect(connection), schemas, is_needed)

    def read(self, reading: Reading, stop: Stop) -> Rows:
        from sqlalchemy.exc import DBAPIError, SQLAlchemyError

        try:
            with self.engine.connect() as connection:
                connection = connection.execution_options(postgresql_readonly=True, no_parameters=True)
                with connection.begin(), stop.ends(_canceller(connection)):
                    _limit_transaction(connection, reading.seconds)
                    end = time.monotonic() + reading.seconds
                    streamed = connection.execution_options(stream_results=True, max_row_buffer=FETCHED_ROWS)
                    with closing(streamed.exec_driver_sql(reading.sql)) as result:
                        return _fetched(result, reading, end)
        except DBAPIError as error:
            raise _told(error, reading) from None
        except SQLAlchemyError:
            raise _unreachable() from None


def _driver_of(connection: Any) -> Any:
    return connection.connection.dbapi_connection


def _canceller(connection: Any) -> Callable[[], object]:
    """Asks the server to end what it does for the connection; one that doesn't hear it is hung up on."""
    driver = _driver_of(connection)
    asked = list[float]()

    def end() -> None:
        asked.append(time.monotonic())
        if asked[-1] - asked[0] < CONNECT_SECONDS:
            driver.cancel_safe(timeout=CONNECT_SECONDS)
        else:  # the reading gets an error where it waits; the descriptor stays its own
            with socket.socket(fileno=os.dup(driver.pgconn.socket)) as line:
                line.shutdown(socket.SHUT_RDWR)

    return end


def _limit_transaction(connection: Any, seconds: float) -> None:
    """What holds in this PostgreSQL transaction only; no query that the guard lets through can change it.

    Set for each transaction and not for the connection, which a pooler may hand on to somebody else.
    """
    milliseconds = int(seconds * 1000)
    values = (milliseconds, int(LOCK_SECONDS * 1000), milliseconds + 5000, "pg_catalog, pg_temp", "on")
    settings = (f"set_config('{name}', '{value}', true)" for name, value in zip(PARAMETERS, values, strict=True))
    connection.exec_driver_sql(f"SELECT {', '.join(settings)}")


def _fetched(result: Any, reading: Reading, end: float) -> Rows:
    """The rows; the server's limit is one of each fetch, so the clock is looked at in between."""
    columns, size = list(result.keys()), 0
    rows: list[list[str | None]] = []
    for row in result:
        if len(rows) == reading.max_rows or size > reading.max_characters:
            return Rows(columns, rows, True)
        if time.monotonic() > end:
            raise _too_slow(reading.seconds)
        rows.append([value_text(value) for value in row])
        size += sum(len(value or "NULL") + len(" | ") for value in rows[-1])
    return Rows(columns, rows, False)


def _told(error: Any, reading: Reading) -> ToolArgumentError | ToolFailedError:
    """What the model may read of the server's error: nothing of the connection, of an inner statement, of a row."""
    state = getattr(error.orig, "sqlstate", None) or ""
    diagnosis = getattr(error.orig, "diag", None)
    if state in ("57014", "55P03"):
        return _too_slow(reading.seconds)
    if state.startswith(("53", "54")):
        return ToolFailedError("the query needed too much memory; filter earlier, join on keys, select less")
    if state == "42501":
        return ToolArgumentError("PostgreSQL refused: that is not open to this connection; keep to the schema")
    if state.startswith(("42", "22", "21", "0A", "2B", "25")) and diagnosis is not None:
        hint = f" ({diagnosis.message_hint})" if diagnosis.message_hint else ""
        said = diagnosis.message_primary
        if not state.startswith("42"):  # which is said of the query alone, before a row is read
            said = _without_values(said, reading.sql)
        return ToolArgumentError(f"PostgreSQL: {said}{hint}"[:500] + "; mend the query by the schema")
    return _unreachable()


def _without_values(message: str, sql: str) -> str:
    """The message without the values in it, unless they are texts of the query.

    A condition may run before the filter of a view, so what it fails on may stand in a row that nobody is to see.
    """
    texts = sql.replace("''", "'")
    return _VALUE.sub(lambda found: found[0] if found[1] and f"'{found[1]}'" in texts else "…", message)


def _unreachable() -> ToolFailedError:
    return ToolFailedError("the database can't be reached now; say so, or try once more", retryable=True)
