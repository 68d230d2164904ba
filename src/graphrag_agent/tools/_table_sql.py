"""What a query over tables of files reads, by its syntax tree."""

from __future__ import annotations

from typing import NamedTuple

from graphrag_agent.errors import ToolArgumentError

DIALECT = "duckdb"


class Reads(NamedTuple):
    """The tables and columns that a query names, in lower case."""

    tables: tuple[str, ...]
    """In the order of the text; those that the query itself defines are not among them, unless it hides one so."""
    defined: frozenset[str]
    """Names of its WITH parts."""
    columns: frozenset[str] | None
    """None: all."""


def checked_query(sql: str) -> str:
    """The query as it is to run. Raises ToolArgumentError for anything but one SELECT."""
    from sqlglot import errors, exp, parse

    try:
        trees = parse(sql, dialect=DIALECT)
    except errors.SqlglotError as error:
        raise ToolArgumentError(f"not valid SQL: {error}") from None
    if len(trees) != 1 or not isinstance(trees[0], exp.Query):
        raise ToolArgumentError("send one SELECT")
    return trees[0].sql(dialect=DIALECT, comments=False)


def reads_of(sql: str) -> Reads:
    """For a query that the guard has let through."""
    from sqlglot import exp, parse_one

    tree = parse_one(sql, dialect=DIALECT)
    tables = dict.fromkeys(
        ".".join(part.name for part in table.parts).casefold() for table in tree.find_all(exp.Table) if table.name
    )
    has_star = any(not isinstance(star.parent, exp.Count) for star in tree.find_all(exp.Star))
    columns = frozenset(column.name.casefold() for column in tree.find_all(exp.Column))
    return Reads(
        tables=tuple(tables),
        defined=frozenset(part.alias.casefold() for part in tree.find_all(exp.CTE)),
        columns=None if has_star else columns,
    )
