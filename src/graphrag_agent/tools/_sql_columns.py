"""Whether the columns that a query names are there, so that the model reads which ones are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from graphrag_agent.errors import ToolArgumentError
from graphrag_agent.tools._sql_tables import VISIBLE_PART, VisibleTable, folding, named, refuse_name
from graphrag_agent.tools._sql_vocabulary import TABLE_FUNCTION_COLUMNS, Dialect

_PLAIN_CALLS = {"Unnest": "unnest", "Explode": "unnest", "ExplodingGenerateSeries": "generate_series"}
"""PostgreSQL's functions whose column is called like the function or its alias, by their nodes; that of others may be
called otherwise."""

_FUNCTION_COLUMNS = frozenset({"key", "value", "ordinality"})
"""Columns of the others; no function of PostgreSQL is called so."""


def refuse_unknown_columns(tree: Any, dialect: Dialect, used: Sequence[VisibleTable]) -> None:
    """Raises ToolArgumentError for a column that no table of the query and no alias in it is called.

    The database has the last word on where a name may stand; this is so that nothing it finds beside the visible
    columns (a row's number, a keyword, a text in double quotes) passes for one.
    """
    from sqlglot import exp

    fold = folding(dialect)
    of_alias = _columns_of_aliases(tree, dialect, used)
    of_function = _columns_of_functions(tree, fold) if dialect == "postgres" else {}
    known = {named(column, dialect) for table in used for column in table.columns} | set(_made_names(tree, dialect))
    for column in tree.find_all(exp.Column):
        qualifier = column.args.get("table")
        if qualifier is not None and fold(qualifier) not in known:
            raise refuse_name("table or alias", qualifier.name, [table.shown_name for table in used])
        if isinstance(column.this, exp.Star):
            continue
        name = fold(column.this)
        there = of_alias.get(fold(qualifier)) if qualifier is not None else None
        if qualifier is not None and fold(qualifier) in of_function:
            there = sorted(of_function[fold(qualifier)])
        if there is not None and name not in {named(item, dialect) for item in there}:
            raise refuse_name("column", f"{qualifier.name}.{column.name}", there)
        if there is None and name not in known:
            raise _unknown(column, used, [alias.alias for alias in tree.find_all(exp.Alias) if alias.alias])


def _unknown(column: Any, used: Sequence[VisibleTable], aliases: Sequence[str]) -> ToolArgumentError:
    plain = [item for table in used for item in table.columns]
    known = plain if len(used) < 2 else [f"{table.shown_name}.{item}" for table in used for item in table.columns]
    hint = ". Write a text in single quotes" if column.this.args.get("quoted") else ""
    return ToolArgumentError(f"{refuse_name('column', column.name, [*known, *dict.fromkeys(aliases)])}{hint}")


def _columns_of_aliases(tree: Any, dialect: Dialect, used: Sequence[VisibleTable]) -> dict[str, list[str]]:
    """Alias -> columns, for aliases that stand for visible tables only, wherever they are in the query."""
    from sqlglot import exp

    fold = folding(dialect)
    tables = {(table.schema, table.name): table for table in used}
    found: defaultdict[str, list[str]] = defaultdict(list)
    unclear = set()
    for node in tree.find_all(exp.Table, exp.Subquery, exp.CTE, exp.Lateral, exp.Unnest, exp.Values):
        alias = node.args.get("alias")
        if not isinstance(alias, exp.TableAlias) or alias.args.get("this") is None:
            continue
        source = node.this.find(exp.Table) if node.meta.get(VISIBLE_PART) else node
        table = tables.get((source.db, source.name)) if isinstance(source, exp.Table) else None
        if table is None or alias.columns:
            unclear.add(fold(alias.this))
        else:
            found[fold(alias.this)].extend(table.columns)
    return {name: columns for name, columns in found.items() if name not in unclear}


def _columns_of_functions(tree: Any, fold: Callable[[Any], str]) -> dict[str, set[str]]:
    """Alias -> what alone may stand after it, for aliases of functions in FROM.

    After one that gives a single value, PostgreSQL takes any name but its column's for a function of that value: with
    `f` for `unnest(...)`, `f.pg_read_file` reads a file. A column of one scope is none of another, so it has to be one
    of every function that is called alike.
    """
    from sqlglot import exp

    found: dict[str, set[str]] = {}
    for node in tree.find_all(exp.Table, exp.Unnest, exp.Lateral):
        made = node if isinstance(node, exp.Unnest) else node.this
        is_part = isinstance(node.parent, exp.Lateral) or node.arg_key == "rows_from"
        if is_part or not (node.args.get("rows_from") or isinstance(made, exp.Func)):
            continue
        alias = node.args.get("alias")
        plain = _PLAIN_CALLS.get(type(made).__name__, "")
        listed = _listed_columns(node)
        if alias is not None and alias.args.get("this") is not None:
            name = fold(alias.this)
        elif not (name := plain or (str(made.name).lower() if isinstance(made, exp.Anonymous) else "")):
            raise ToolArgumentError("give the function in FROM a name, as in FROM lower('A') AS lowered")
        columns = {*_FUNCTION_COLUMNS, *(map(fold, listed) if listed else [name] if plain else [])}
        found[name] = found.get(name, columns) & columns
    return found


def _listed_columns(node: Any) -> list[Any]:
    """The names that an alias gives to columns; WITH ORDINALITY has its own apart."""
    from sqlglot import exp

    alias, offset = node.args.get("alias"), node.args.get("offset")
    listed = [part for part in alias.columns if isinstance(part, exp.Identifier)] if alias is not None else []
    return [*listed, offset] if isinstance(offset, exp.Identifier) else listed


def _made_names(tree: Any, dialect: Dialect) -> Iterator[str]:
    """Names that the query itself makes: aliases, lists of column names, and what a function's column is called."""
    from sqlglot import exp

    fold = folding(dialect)
    for node in tree.walk():
        if isinstance(node, exp.TableAlias):
            yield from (fold(part) for part in (node.this, *node.columns) if isinstance(part, exp.Identifier))
        elif isinstance(node, exp.Alias):
            yield named(node.alias, dialect)
        elif isinstance(node, exp.Aliases):
            yield from (fold(part) for part in node.expressions if isinstance(part, exp.Identifier))
        elif isinstance(node, exp.Unnest):
            yield from map(fold, _listed_columns(node))
            yield from TABLE_FUNCTION_COLUMNS
        elif isinstance(node, exp.Func):
            names = [node.name] if isinstance(node, exp.Anonymous) else type(node).sql_names()
            yield from map(str.lower, names)
            if isinstance(node.parent, exp.Table | exp.From | exp.Join | exp.Lateral):
                yield from TABLE_FUNCTION_COLUMNS
        elif isinstance(node, exp.Lambda):
            yield from (fold(part) for part in node.expressions if isinstance(part, exp.Identifier))
        elif isinstance(node, exp.Pivot):
            yield from (fold(part) for part in node.find_all(exp.Identifier))
