"""The tool that reads configured databases with the model's SQL."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Annotated, Any

from langchain_core.tools import InjectedToolArg, StructuredTool
from pydantic import Field

from graphrag_agent.citations import Evidence
from graphrag_agent.tools._database_access import Access, load_databases
from graphrag_agent.tools._database_reading import PROCESS_SECONDS, Reading, Stop
from graphrag_agent.tools._database_schema import TableInfo, render_schema
from graphrag_agent.tools._database_threads import run_stoppable
from graphrag_agent.tools._databases import Database, Databases
from graphrag_agent.tools._query_result import Rows, fitted, render_table
from graphrag_agent.tools._sql_guard import CheckedQuery, checked_query
from graphrag_agent.tools._sql_tables import VisibleTable, refuse_name
from graphrag_agent.tools.evidence_message import render_evidence
from graphrag_agent.tools.made_evidence import made_evidence
from graphrag_agent.tools.spec import ToolSpec

MAX_ROWS, MAX_RESULT_CHARACTERS = 50, 6_000
MAX_SCHEMA_CHARACTERS, MAX_NAMES_CHARACTERS = 8_000, 2_000
SAMPLE_ROWS, SAMPLED_TABLES = 3, 5
QUERY_SECONDS = 10.0
HEADING_CHARACTERS = 120


def build_database_query(databases: Databases, *, seconds: float = QUERY_SECONDS) -> ToolSpec:
    """A `database_query` over these databases; the scope that decides what is visible is injected by the loop.

    `seconds` is what one query may take on the database.
    """

    async def database_query(
        scope: Annotated[Any, InjectedToolArg],
        database: Annotated[
            str | None, Field(description="Name of the database; leave it out to learn which there are")
        ] = None,
        sql: Annotated[
            str | None,
            Field(description="One SELECT (or WITH ... SELECT) in the database's dialect; leave it out for the schema"),
        ] = None,
        tables: Annotated[
            list[str] | None,
            Field(max_length=SAMPLED_TABLES, description="Without sql: show these tables with a few of their rows"),
        ] = None,
    ) -> tuple[str, dict[str, Any]]:
        """Ask a database with SQL; it can only be read.

        Use it for figures, lists and records that a database keeps: counts, sums, dates, joins. Look at the schema
        first: call it without sql. Let the database compute (COUNT, SUM, GROUP BY, ORDER BY ... LIMIT) instead of
        reading many rows. Don't use it for what documents say. At most 50 rows come back. If a query is refused, the
        error says what to mend. Each result comes with an id; cite it in the answer as [id].
        """
        offered = databases.open_to(scope)
        if database is None:
            return _list_of(offered)
        if database not in offered:
            raise refuse_name("database", database, list(offered))
        found, access = offered[database]
        if sql is None or not sql.strip():
            return await run_stoppable(lambda stop: _schema_message(found, access, tables, seconds, stop))
        return await run_stoppable(lambda stop: _query_message(found, access, sql, seconds, stop))

    tool = StructuredTool.from_function(
        coroutine=database_query,
        name="database_query",
        description=inspect.cleandoc(database_query.__doc__ or ""),
        response_format="content_and_artifact",
    )
    whole = seconds + 2 * PROCESS_SECONDS + 5  # connecting and reading the schema come on top
    return ToolSpec(tool, family="database", side_effect_free=True, timeout_seconds=whole)


def open_databases(file: str | Path) -> Databases:
    """The databases of a JSON file; SQLite files are looked for from its folder. Connects to none yet.

    Raises SettingsError that names the field.
    """
    return Databases(load_databases(file), folder=Path(file).parent)


def _list_of(offered: dict[str, tuple[Database, Access]]) -> tuple[str, dict[str, Any]]:
    if not offered:
        return render_evidence([], note="No database is open to this user; say so, or look elsewhere.")
    lines = "\n".join(f"- {name}: {database.config.description}" for name, (database, _) in offered.items())
    return render_evidence([], note=f"Databases (call again with `database` for its tables):\n{lines}")


def _schema_message(
    database: Database, access: Access, wanted: Sequence[str] | None, seconds: float, stop: Stop
) -> tuple[str, dict[str, Any]]:
    """The visible tables; for those that are asked for, some rows of each too."""
    visible = database.tables(access, stop)
    if not visible:
        return render_evidence([], note=f"Nothing of {database.name} is open to this user; say so, or look elsewhere.")
    names = [table.shown_name for table in visible]
    for name in wanted or ():
        if name not in names:
            raise refuse_name("table", name, names)
    shown = [table for table in visible if not wanted or table.shown_name in wanted]
    text, left_out = render_schema(shown, max_characters=MAX_SCHEMA_CHARACTERS)
    if wanted:
        each = MAX_RESULT_CHARACTERS // len(shown)
        samples = [_sample(database, table, visible, seconds, stop, max_characters=each) for table in shown]
        text = "\n\n".join([text, *filter(None, samples)])
    note = f"{database.reader.dialect} SQL. " + (
        f"Not shown: {_listed(left_out)}. Ask for them with `tables`."
        if left_out
        else "With `tables`, a few rows of each come too."
        if not wanted
        else "Write one SELECT over these tables."
    )
    key = f"sql:{database.name}:schema:{','.join(wanted or ())}"
    return render_evidence([_evidence(database, key, shown, text, heading="schema")], note=note)


def _listed(names: Sequence[str]) -> str:
    """The names, or as many as there is room for and the number of the others."""
    ends = accumulate(len(name) + len(", ") for name in names)
    shown = sum(end <= MAX_NAMES_CHARACTERS for end in ends)
    more = [f"and {len(names) - shown:,} more"] if shown < len(names) else []
    return ", ".join([*names[:shown], *more])


def _sample(
    database: Database,
    table: TableInfo,
    visible: Sequence[TableInfo],
    seconds: float,
    stop: Stop,
    *,
    max_characters: int,
) -> str:
    """A few rows, so that the model sees how values are written."""
    mark = "`" if database.reader.dialect == "sqlite" else '"'
    name = ".".join(mark + part.replace(mark, mark * 2) + mark for part in filter(None, [table.schema, table.name]))
    query = checked_query(
        f"SELECT * FROM {name}",  # noqa: S608  # a name of the database's own, quoted
        dialect=database.reader.dialect,
        tables=visible,
        max_rows=SAMPLE_ROWS,
    )
    rows = fitted(_read(database, query, visible, seconds, stop, max_rows=SAMPLE_ROWS), max_characters)
    left_out = f" without its last {rows.more_columns} columns" if rows.more_columns else ""
    return f"{table.shown_name}, {len(rows.rows)} of its rows{left_out}:\n{render_table(rows)}"


def _query_message(
    database: Database, access: Access, sql: str, seconds: float, stop: Stop
) -> tuple[str, dict[str, Any]]:
    visible = database.tables(access, stop)
    query = checked_query(sql, dialect=database.reader.dialect, tables=visible, max_rows=MAX_ROWS + 1)
    rows = fitted(_read(database, query, visible, seconds, stop, max_rows=MAX_ROWS), MAX_RESULT_CHARACTERS)
    text = f"SQL: {query.shown}\n\n{render_table(rows)}\n\n{_count(rows)}"
    evidence = _evidence(database, f"sql:{database.name}:{query.shown}", query.tables, text, heading=query.shown)
    return render_evidence([evidence], note=_note(rows))


def _read(
    database: Database, query: CheckedQuery, visible: Sequence[TableInfo], seconds: float, stop: Stop, *, max_rows: int
) -> Rows:
    columns = {table.name: table.columns for table in visible}
    return database.reader.read(Reading(query.sql, columns, seconds, max_rows, MAX_RESULT_CHARACTERS), stop)


def _evidence(database: Database, key: str, tables: Sequence[VisibleTable], text: str, *, heading: str) -> Evidence:
    names = ", ".join(table.shown_name for table in tables)
    source = f"database {database.name}" + (f": {names[:300]}" if names else "")
    short = " ".join(heading.split())
    shown = short if len(short) <= HEADING_CHARACTERS else f"{short[:HEADING_CHARACTERS]}…"
    return made_evidence(key, title=database.name, source=source, text=text, heading=shown, is_computed=True)


def _count(rows: Rows) -> str:
    count = f"{len(rows.rows)} row{'' if len(rows.rows) == 1 else 's'}"
    count = f"the first {count}, there are more" if rows.is_cut else count
    return f"{count}; {rows.more_columns} more columns are left out" if rows.more_columns else count


def _note(rows: Rows) -> str:
    said = []
    if rows.more_columns:
        said.append(f"Only the first {len(rows.columns)} columns are shown. Select the columns that you need by name.")
    if rows.is_cut:
        shown = "row is" if len(rows.rows) == 1 else f"{len(rows.rows)} rows are"
        said.append(
            f"Only the first {shown} shown. Aggregate or filter; or read on with ORDER BY and OFFSET {len(rows.rows)}."
        )
    if not rows.rows:
        said.append("No row matched. Check how values are written: call without sql, with `tables`, to see some rows.")
    return " ".join(said)
