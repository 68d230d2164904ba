"""Which table each name of a query stands for, and the query with those tables in its place."""

from __future__ import annotations

import difflib
import string
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from graphrag_agent.errors import ToolArgumentError
from graphrag_agent.tools._sql_vocabulary import Dialect

_OWN_NAME = "with_"
"""In front of a CTE's name, so that a name which only looks like the CTE's finds no table."""


MAX_WRITTEN_COLUMNS = 10_000
"""Of all tables that stand for their visible columns; a thousand take a tenth of a second to write and read."""

_ASCII_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
"""In UTF-8, PostgreSQL leaves all other letters as they are: Имя without quotes is no имя."""

POSTGRES_NAME_BYTES = 63
"""What is longer is cut by PostgreSQL, and so may be another's name."""

VISIBLE_PART = "visible_part"
"""Marks the subquery that stands for a table with hidden columns."""


@dataclass(frozen=True)
class VisibleTable:
    """A table that a query may read, with the columns it may show."""

    name: str
    columns: tuple[str, ...]
    schema: str = ""
    hides_columns: bool = False
    """The table has other columns, or may get some: it is read through a subquery of the visible ones."""
    needs_schema: bool = False
    """Only its full name finds it: it is in no schema that the database looks into by itself."""

    @property
    def shown_name(self) -> str:
        """The name to write in a query."""
        return f"{self.schema}.{self.name}" if self.needs_schema else self.name


def bind_tables(tree: Any, dialect: Dialect, tables: Sequence[VisibleTable]) -> tuple[VisibleTable, ...]:
    """The tables that the query reads; in the tree each stands with its schema and its visible columns only.

    Raises ToolArgumentError for a name that is neither one of the tables nor a CTE.
    """
    from sqlglot import exp

    fold = folding(dialect)
    if dialect == "postgres":  # all names get quoted later, so they must have the form they are looked up by
        for name in tree.find_all(exp.Identifier):
            name.set("this", fold(name))
    found = list(tree.find_all(exp.Table))
    places = {id(node): _cte_of(node, fold) or _table_of(node, dialect, tables) for node in found}
    parts = [place for place in places.values() if isinstance(place, VisibleTable) and place.hides_columns]
    written = sum(len(part.columns) for part in parts)
    if written > MAX_WRITTEN_COLUMNS:
        raise ToolArgumentError(
            f"the query names wide tables so often that it would have {written:,} columns, {MAX_WRITTEN_COLUMNS:,} are "
            "allowed; name each table once, in a WITH"
        )
    for node in found:
        place = places[id(node)]
        if isinstance(place, VisibleTable):
            _put(node, place)
        elif place is not None:
            _name_alias(node)
            node.set("this", exp.to_identifier(_OWN_NAME + node.name, quoted=True))
    for cte in tree.find_all(exp.CTE):
        cte.args["alias"].set("this", exp.to_identifier(_OWN_NAME + cte.alias, quoted=True))
    for column in tree.find_all(exp.Column):
        column.set("db", None)
        column.set("catalog", None)
    used = {place.shown_name: place for place in places.values() if isinstance(place, VisibleTable)}
    return tuple(used[name] for name in sorted(used))


def table_names(tree: Any, dialect: Dialect) -> frozenset[str]:
    """What the query reads and doesn't make itself, by its names as `folding` has them."""
    from sqlglot import exp

    fold = folding(dialect)
    found = (node for node in tree.find_all(exp.Table) if isinstance(node.this, exp.Identifier))
    return frozenset(fold(node.this) for node in found if _cte_of(node, fold) is None)


def folding(dialect: Dialect) -> Callable[[Any], str]:
    """How names of the dialect are compared: PostgreSQL tells quoted ones apart by case, and cuts long ones."""

    def fold(identifier: Any) -> str:
        if dialect == "postgres":
            name = str(identifier.name) if identifier.args.get("quoted") else identifier.name.translate(_ASCII_LOWER)
            return str(name.encode()[:POSTGRES_NAME_BYTES].decode(errors="ignore"))
        return str(identifier.name).lower()

    return fold


def named(name: str, dialect: Dialect) -> str:
    """A name of the database in the form that `folding` gives."""
    return name if dialect == "postgres" else name.lower()


def refuse_name(kind: str, name: str, known: Sequence[str]) -> ToolArgumentError:
    """There is no such thing, with the names that there are."""
    last = [item.rpartition(".")[2].lower() for item in known]
    close = difflib.get_close_matches(name.rpartition(".")[2].lower(), last, n=1, cutoff=0.6)
    meant = known[last.index(close[0])] if close else ""
    guess = f"did you mean {meant}? " if meant else ""
    listed = ", ".join(known[:60]) + (", ..." if len(known) > 60 else "")
    return ToolArgumentError(f"there is no {kind} {name[:100]!r}; {guess}There is: {listed or 'none'}")


def _cte_of(node: Any, fold: Callable[[Any], str]) -> Any:
    """The CTE that the name stands for where it is written; None for a table or a function."""
    from sqlglot import exp

    if node.args.get("db") or not isinstance(node.this, exp.Identifier):
        return None
    name = fold(node.this)
    for cte in _ctes_around(node):
        if fold(cte.args["alias"].this) == name:
            return cte
    return None


def _ctes_around(node: Any) -> Iterator[Any]:
    """The CTEs that can be seen from the node, nearest first."""
    from sqlglot import exp

    child, parent = node, node.parent
    while parent is not None:
        if isinstance(parent, exp.With):
            siblings = parent.expressions
            yield from siblings if parent.args.get("recursive") else reversed(siblings[: siblings.index(child)])
        elif (block := parent.args.get("with_")) is not None and child is not block:
            yield from reversed(block.expressions)
        child, parent = parent, parent.parent


def _table_of(node: Any, dialect: Dialect, tables: Sequence[VisibleTable]) -> VisibleTable | None:
    from sqlglot import exp

    fold = folding(dialect)
    if node.args.get("rows_from"):
        return None  # each function in it is a node of its own
    if node.args.get("catalog") or (node.args.get("db") and not isinstance(node.this, exp.Identifier)):
        raise ToolArgumentError("write a table as name or schema.name, and a function without a schema")
    if isinstance(node.this, exp.Func):
        return None
    if not isinstance(node.this, exp.Identifier):
        raise ToolArgumentError("FROM takes a table's name, a query in parentheses, or an allowed function")
    name, schema = fold(node.this), node.args.get("db")
    matches = [
        table
        for table in tables
        if named(table.name, dialect) == name and (schema is None or named(table.schema, dialect) == fold(schema))
    ]
    if schema is None and len(matches) > 1:
        matches = [table for table in matches if not table.needs_schema]
    elif schema is None:
        matches = [table for table in matches if not table.needs_schema] or matches
    if len(matches) != 1:
        asked = f"{schema.name}.{node.name}" if schema is not None else node.name
        raise refuse_name("table", asked, [table.shown_name for table in tables])
    return matches[0]


def _identifier(name: str) -> Any:
    from sqlglot import exp

    return exp.to_identifier(name, quoted=True)


def _name_alias(node: Any) -> None:
    """The name that the rest of the query knows the table by stays."""
    from sqlglot import exp

    alias = node.args.get("alias")
    if alias is None:
        node.set("alias", exp.TableAlias(this=node.this.copy()))
    elif alias.args.get("this") is None:
        alias.set("this", node.this.copy())


def _put(node: Any, table: VisibleTable) -> None:
    """The table by its full name in the node's place, or its visible columns where it has others."""
    from sqlglot import exp

    _name_alias(node)
    node.set("this", _identifier(table.name))
    node.set("db", _identifier(table.schema) if table.schema else None)
    if not table.hides_columns:
        return
    inner = exp.Table(this=node.this.copy(), db=node.args["db"] and node.args["db"].copy(), only=node.args.get("only"))
    columns = [exp.column(_identifier(name)) for name in table.columns]
    around = {name: node.args[name] for name in ("alias", "joins", "laterals", "pivots") if node.args.get(name)}
    part = exp.Subquery(this=exp.select(*columns).from_(inner), **around)
    part.meta[VISIBLE_PART] = True
    node.replace(part)
