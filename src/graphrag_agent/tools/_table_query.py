"""A model's query over the tables of a DuckDB connection: checked, and what it reads."""

from __future__ import annotations

from collections.abc import Sequence

from graphrag_agent.tools._sql_guard import CheckedQuery, checked_query, named_tables
from graphrag_agent.tools._sql_tables import VisibleTable
from graphrag_agent.tools._sql_vocabulary import Dialect
from graphrag_agent.tools._table_answer import MAX_RESULT_ROWS, ReadTold, TableTold

DIALECT: Dialect = "duckdb"
_MORE_FUNCTIONS = frozenset(
    {"TRY_STRPTIME", "QUANTILE_CONT", "QUANTILE_DISC", "DATE_FROM_PARTS", "TIMESTAMP_FROM_PARTS", "NORMALIZE"}
)


def names_in(sql: str) -> frozenset[str]:
    """The tables that the query names, in lower case. Raises ToolArgumentError where it is no query."""
    return named_tables(sql, dialect=DIALECT)


def check(sql: str, tables: Sequence[TableTold], others: Sequence[str]) -> CheckedQuery:
    """The query as it may run over the tables. Raises ToolArgumentError that says what to write instead.

    `others` are tables that the query doesn't name, for the list of those that there are.
    """
    visible = [VisibleTable(table.name, tuple(column.name for column in table.columns)) for table in tables]
    visible += [VisibleTable(name, ()) for name in others]
    return checked_query(sql, dialect=DIALECT, tables=visible, max_rows=MAX_RESULT_ROWS + 1, functions=_MORE_FUNCTIONS)


def reads_of(query: CheckedQuery, tables: Sequence[TableTold]) -> list[ReadTold]:
    """The tables that the query reads, each with the columns that it names, or all where it names none or asks for *.

    A column counts for each of the tables that has one of that name; NATURAL and a table named as a column ask for all.
    """
    from sqlglot import exp, parse_one

    tree = parse_one(query.sql, dialect=DIALECT)
    joins = list(tree.find_all(exp.Join))
    has_star = any(not isinstance(star.parent, exp.Count) for star in tree.find_all(exp.Star))
    has_star = has_star or any(join.args.get("method") == "NATURAL" for join in joins)
    used = [name for join in joins for name in join.args.get("using") or ()]
    named = {column.name.casefold() for column in [*tree.find_all(exp.Column), *used]}
    read = {table.name for table in query.tables}
    known = {column.name for table in tables if table.name in read for column in table.columns}
    has_star = has_star or not named.isdisjoint({node.alias.casefold() for node in tree.find_all(exp.Table)} - known)
    found = []
    for at, table in enumerate(tables):
        if table.name in read:
            places = [place for place, column in enumerate(table.columns) if column.name in named]
            everything = has_star or not places
            found.append(ReadTold(table=at, columns=list(range(len(table.columns))) if everything else places))
    return found
