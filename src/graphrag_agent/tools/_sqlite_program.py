"""Runs one query on a SQLite file, as a program of its own that can be killed. Needs nothing but Python.

One JSON object comes in, one goes out. The file is opened for reading only; what may be read is checked again by
SQLite itself; memory, processor time and temporary files have limits. LIKE on a long text can't be interrupted from
inside the process, and some functions build long texts at once: therefore a process.
"""

from __future__ import annotations

import json
import sqlite3
import sys
import time
from contextlib import suppress
from typing import Any

MAX_VALUE_BYTES = 1_000_000
MAX_MEMORY_BYTES = 512 * 1024 * 1024
MAX_TEMPORARY_BYTES = 256 * 1024 * 1024
INSTRUCTIONS_A_LOOK = 2_000
"""So many of SQLite's instructions, well below a millisecond, between two looks at the clock."""

TABLE_FUNCTIONS = frozenset({"json_each", "json_tree"})
FUNCTIONS = """
    abs acos asin atan atan2 avg ceil ceiling char coalesce concat concat_ws cos cosh count cume_dist
    current_date current_time current_timestamp date datetime degrees dense_rank exp first_value floor format
    glob group_concat hex ifnull iif instr json json_array_length json_each json_extract json_tree json_type
    json_valid julianday lag last_value lead length like ln log log10 log2 lower ltrim max min mod nth_value
    ntile nullif percent_rank pi pow power printf quote radians rank replace round row_number rtrim sign sin
    sinh sqrt strftime string_agg substr substring sum tan tanh time timediff total trim trunc typeof unicode
    unixepoch upper -> ->>
"""
"""By SQLite's own names; none of them reads or writes anything."""

_KINDS = {
    sqlite3.SQLITE_INTERRUPT: "time",
    sqlite3.SQLITE_AUTH: "denied",
    sqlite3.SQLITE_NOMEM: "memory",
    sqlite3.SQLITE_FULL: "memory",
    **dict.fromkeys(
        (
            *(sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_IOERR),
            *(sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_READONLY),
        ),
        "unreachable",
    ),
}
"""By SQLite's code and never by its text, which names the query's tables and columns."""


def main() -> None:
    """The answer to the request on standard input."""
    request = json.load(sys.stdin)
    _limit_process(request["seconds"])
    try:
        answer = _read(request)
    except sqlite3.Error as error:
        answer = {"error": _kind(error), "message": str(error)[:500]}
    except MemoryError:
        answer = {"error": "memory", "message": ""}
    json.dump(answer, sys.stdout)


def _limit_process(seconds: float) -> None:
    try:
        import resource
    except ImportError:  # Windows: the caller's clock and SQLite's own limits remain
        return
    for what, limit in (
        (resource.RLIMIT_AS, MAX_MEMORY_BYTES),
        (resource.RLIMIT_CPU, int(seconds) + 2),
        (resource.RLIMIT_FSIZE, MAX_TEMPORARY_BYTES),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(what)
        allowed = limit if hard == resource.RLIM_INFINITY else min(limit, hard)  # nobody may raise a limit
        resource.setrlimit(what, (allowed, allowed))


def _read(request: dict[str, Any]) -> dict[str, Any]:
    connection = sqlite3.connect(request["uri"], uri=True, isolation_level=None, timeout=request["seconds"] / 2)
    connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
    connection.execute("PRAGMA query_only = ON")
    connection.execute("PRAGMA trusted_schema = OFF")
    for what, limit in (
        (sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES),
        (sqlite3.SQLITE_LIMIT_ATTACHED, 0),
        (sqlite3.SQLITE_LIMIT_WORKER_THREADS, 0),
    ):
        connection.setlimit(what, limit)
    named = dict(connection.execute("SELECT lower(name), type FROM main.sqlite_schema").fetchall())
    views = _views_read(connection, list(request["tables"]), named)
    end = time.monotonic() + request["seconds"]
    connection.set_progress_handler(lambda: time.monotonic() > end, INSTRUCTIONS_A_LOOK)
    connection.set_authorizer(_authorizer(request["tables"], views, named))
    cursor = connection.execute(request["sql"])
    columns = [str(item[0]) for item in cursor.description or ()]
    rows: list[list[Any]] = []
    size = 0
    for row in cursor:
        if len(rows) == request["max_rows"] or size > request["max_characters"]:
            return {"columns": columns, "rows": rows, "is_cut": True}
        rows.append([_value(value, request["max_cell"]) for value in row])
        size += sum(_length(value) + len(" | ") for value in rows[-1])
    return {"columns": columns, "rows": rows, "is_cut": False}


def _views_read(connection: sqlite3.Connection, visible: list[str], named: dict[str, str]) -> set[str]:
    """The visible views, and those that they read: SQLite tells each name while it reads a query."""
    views = {name for name, kind in named.items() if kind == "view"}
    found = {name.lower() for name in visible} & views
    if found == views:
        return found

    def note(_: int, __: str | None, ___: str | None, ____: str | None, source: str | None) -> int:
        found.add((source or "").lower())
        return sqlite3.SQLITE_OK

    connection.set_authorizer(note)
    for name in sorted(found):
        quoted = name.replace("`", "``")
        with suppress(sqlite3.Error):  # a broken one reads nothing
            connection.execute(f"EXPLAIN SELECT * FROM main.`{quoted}`")  # noqa: S608  # a name of the file's own, quoted
    return found & views


def _authorizer(tables: dict[str, list[str]], views: set[str], named: dict[str, str]) -> Any:
    """SQLite asks it while it reads the query: only visible columns, or what stands behind one of the `views`.

    A table of which only the rows count is read without a column; so are the query's own parts, which have any name but
    one of the database's `named`, and once more what a view has read.
    """
    functions = frozenset(FUNCTIONS.split())
    visible = {table.lower(): {column.lower() for column in columns} for table, columns in tables.items()}

    hidden = named.keys() - visible.keys()
    behind_views: set[str] = set()

    def authorize(action: int, first: str | None, second: str | None, _: str | None, source: str | None) -> int:
        if action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE):
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_FUNCTION:
            return sqlite3.SQLITE_OK if (second or "").lower() in functions else sqlite3.SQLITE_DENY
        if action != sqlite3.SQLITE_READ:
            return sqlite3.SQLITE_DENY
        table, column = (first or "").lower(), (second or "").lower()
        if (source or "").lower() in views:
            behind_views.add(table)
            return sqlite3.SQLITE_OK
        is_open = table in TABLE_FUNCTIONS or (not column and table in behind_views)
        is_open |= column in visible.get(table, ())
        is_open |= not column and table not in hidden and not table.startswith(("sqlite_", "pragma_"))
        return sqlite3.SQLITE_OK if is_open else sqlite3.SQLITE_DENY

    return authorize


def _value(value: Any, max_cell: int) -> Any:
    """A text as it is or its beginning, bytes by their beginning, numbers and NULL as they are."""
    if isinstance(value, bytes):
        return {"bytes": len(value), "hex": value[:16].hex()}
    if isinstance(value, str) and len(value) > max_cell:
        return {"characters": len(value), "text": value[:max_cell]}
    return value


def _length(value: Any) -> int:
    """About the characters that are shown of it."""
    if isinstance(value, dict):
        return len(value.get("text") or value["hex"]) + len("… (400 characters)")
    return len(str(value))


def _kind(error: sqlite3.Error) -> str:
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    if code == sqlite3.SQLITE_IOERR_WRITE:  # only temporary files are written
        return "memory"
    if str(error).startswith("not authorized to use function"):  # which has no code of its own
        return "denied"
    return _KINDS.get(code & 0xFF, "sql")


if __name__ == "__main__":
    main()
