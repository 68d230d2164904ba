"""Whether a query that a model wrote may run, and how: one statement that only reads what it may see.

Pure: no database. The text that runs is written anew from the parsed query, so no comment and no reading of the text
other than sqlglot's gets through. A table is named with its schema, a table with hidden columns is a subquery of the
visible ones, and a CTE has a name of its own: `*`, NATURAL, USING, whole rows and namesakes find nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

from graphrag_agent.errors import MissingExtraError, ToolArgumentError
from graphrag_agent.tools import _sqlite_program
from graphrag_agent.tools._sql_columns import refuse_unknown_columns
from graphrag_agent.tools._sql_tables import VisibleTable, bind_tables, table_names
from graphrag_agent.tools._sql_vocabulary import FUNCTIONS, MORE_NODES, NODES, TYPES, Dialect
from graphrag_agent.whole_characters import whole_characters

MAX_CHARACTERS, MAX_TOKENS, MAX_DEPTH = 20_000, 4_000, 30
"""A long analytical query has 5,000 characters and a depth of 10; parsing takes time that grows with all three."""

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_ ]{0,40}|\d{1,20}")

_CALL = re.compile(r"(\w+)\(")

MAX_STEPS_A_TOKEN = 100
"""Real queries need 2."""

_FIRST_WORDS = {"SELECT", "WITH", "VALUES", "("}
_ONLY_READS = "Write one query that begins with SELECT or WITH; this tool only reads."


@dataclass(frozen=True)
class CheckedQuery:
    """A query that may run."""

    sql: str
    """What the database is to run."""
    shown: str
    """The model's query, written anew without comments, for the reader."""
    tables: tuple[VisibleTable, ...]
    """The tables that it reads, by name."""


def checked_query(
    sql: str,
    *,
    dialect: Dialect,
    tables: Sequence[VisibleTable],
    max_rows: int | None = None,
    functions: Collection[str] = (),
) -> CheckedQuery:
    """The query as it may run. Raises ToolArgumentError that names what is refused and what to write instead.

    `tables` are all that the query may read. With `max_rows` the query gives at most so many where it is easy to say
    so; the caller still counts. `functions` are allowed beside the dialect's, by sqlglot's names.
    """
    sql = whole_characters(sql)
    _check_size(sql)
    allowed = FUNCTIONS[dialect] | set(functions)
    with _refusing():
        tree = _parsed(sql, dialect)
        _refuse_nodes(tree, dialect, allowed, sql)
        shown = _written(tree, dialect)
        used = bind_tables(tree, dialect, tables)
        refuse_unknown_columns(tree, dialect, used)
        if max_rows is not None:
            _limit(tree, max_rows)
        # quoted, a name is a name and never a keyword (in PostgreSQL, user is one)
        written = _written(tree, dialect, quoted=dialect != "sqlite")
        _check_written(written, tree, dialect, allowed)
    return CheckedQuery(written, shown, used)


def named_tables(sql: str, *, dialect: Dialect) -> frozenset[str]:
    """The tables that the query reads by their names in it, before anything else of it is checked.

    Raises ToolArgumentError where it is no query.
    """
    sql = whole_characters(sql)
    _check_size(sql)
    with _refusing():
        return table_names(_parsed(sql, dialect), dialect)


@contextmanager
def _refusing() -> Iterator[None]:
    """Whatever is wrong with a query is told to the model."""
    try:
        yield
    except (ToolArgumentError, MissingExtraError):
        raise
    except RecursionError:
        raise ToolArgumentError("the query is nested too deeply; split it with WITH, or ask in several calls") from None
    except Exception:  # sqlglot raises whatever it stumbles on, such as ValueError for an empty unit
        raise ToolArgumentError("the query can't be read; write it in a simpler way, with plain functions") from None


def _check_size(sql: str) -> None:
    if len(sql) > MAX_CHARACTERS:
        raise ToolArgumentError(
            f"the query has {len(sql):,} characters, {MAX_CHARACTERS:,} are allowed; filter with a condition or a join "
            "instead of a long list"
        )
    if "\0" in sql:
        raise ToolArgumentError("the query has a zero character; remove it")


def _parsed(sql: str, dialect: Dialect, *, is_ours: bool = False) -> Any:
    """The query's tree; what is ours may be long, as a table in it can stand for a subquery of many columns."""
    sqlglot = load_sqlglot()
    errors = sqlglot.errors
    try:
        tokens = sqlglot.tokenize(sql, dialect=dialect)
        if not is_ours:
            _check_tokens(tokens, dialect)
        statements = _patient_parser(dialect, len(tokens)).parse(tokens, sql)
    except errors.ParseError as error:
        raise ToolArgumentError(f"the query is no valid {dialect} SQL: {_where(error)}") from None
    except errors.SqlglotError:
        raise ToolArgumentError(
            f"the query is no valid {dialect} SQL: a string, a name or a comment is not closed"
        ) from None
    while len(statements) > 1 and (statements[-1] is None or isinstance(statements[-1], sqlglot.exp.Semicolon)):
        statements.pop()  # a comment after the last semicolon
    if len(statements) != 1 or statements[0] is None:
        raise ToolArgumentError(f"the query has {len(statements)} statements. {_ONLY_READS}")
    if not isinstance(statements[0], sqlglot.exp.Query | sqlglot.exp.Values):
        raise ToolArgumentError(f"{statements[0].key.upper()} is refused. {_ONLY_READS}")
    return _as_select(statements[0])


def _patient_parser(dialect: Dialect, token_count: int) -> Any:
    """A parser that gives up: sqlglot tries every reading of nested brackets, and 20 of them take it minutes."""
    target = load_sqlglot().Dialect.get_or_raise(dialect)
    left = MAX_STEPS_A_TOKEN * (token_count + 10)

    class Patient(target.parser_class):  # type: ignore[misc, name-defined]  # the dialect's own parser
        def _advance(self, times: int = 1) -> None:
            nonlocal left
            left -= 1
            if left < 0:  # no ParseError, which the parser would take for one more wrong reading
                raise ToolArgumentError("the query takes too long to read; nest fewer brackets and functions")
            super()._advance(times)

    return Patient(dialect=target)


def _as_select(tree: Any) -> Any:
    """VALUES as a query, so that it can have a limit."""
    exp = load_sqlglot().exp
    if isinstance(tree, exp.Values):
        return exp.select("*").from_(exp.alias_(tree, "listed", table=True))
    return tree


def _check_tokens(tokens: Sequence[Any], dialect: Dialect) -> None:
    if not tokens:
        raise ToolArgumentError(f"the query is empty. {_ONLY_READS}")
    if len(tokens) > MAX_TOKENS:
        raise ToolArgumentError(
            f"the query has {len(tokens):,} words, {MAX_TOKENS:,} are allowed; ask for less at once"
        )
    first = tokens[0].text.upper()
    if first not in _FIRST_WORDS | ({"FROM"} if dialect == "duckdb" else set()):
        raise ToolArgumentError(f"{first[:40]} is refused. {_ONLY_READS}")
    for before, after in pairwise(tokens):
        if before.token_type.name == "NUMBER" and after.text.startswith("_") and after.start == before.end + 1:
            raise ToolArgumentError(f"{(before.text + after.text)[:40]} is no number here; write it in digits alone")
    depth = deepest = 0
    for token in tokens:
        depth += (token.text in "([{") - (token.text in ")]}") if len(token.text) == 1 else 0
        deepest = max(deepest, depth)
        if any(comment.startswith(("!", "M!")) for comment in token.comments):
            raise ToolArgumentError("a comment that MySQL runs as SQL (/*! */) is refused; write the query without it")
    if deepest > MAX_DEPTH:
        raise ToolArgumentError(
            f"the query is nested {deepest} deep, {MAX_DEPTH} is allowed; split it with WITH, or ask in several calls"
        )


def _where(error: Any) -> str:
    """What the parser missed, and where, without its colours."""
    first = error.errors[0] if error.errors else {}
    place = f" near {first['highlight']!r} in line {first['line']}" if first.get("highlight") else ""
    return f"{first.get('description', 'it can not be read')}{place}"[:300]


def _refuse_nodes(tree: Any, dialect: Dialect, functions: Collection[str], sql: str) -> None:
    exp = load_sqlglot().exp
    nodes = NODES | MORE_NODES.get(dialect, frozenset())
    for node in tree.walk():
        kind = type(node).__name__
        if isinstance(node, exp.Func):
            if (name := function_name(node)) not in functions:
                use = ", ".join(_like(name, functions, dialect))
                raise ToolArgumentError(f"the function {_spelt(node, dialect, sql)} is refused; use {use}")
            if isinstance(node.parent, exp.Dot):
                raise ToolArgumentError(f"write the function {name.lower()} without a schema in front")
        elif kind not in nodes:
            raise ToolArgumentError(f"{_words(kind)} is refused. {_ONLY_READS}")
        elif isinstance(node, exp.Var) and not _WORD.fullmatch(node.name):  # written as it stands, without quotes
            raise ToolArgumentError(f"{node.name[:60]!r} is no unit or keyword; write one word such as month")
        elif isinstance(node, exp.DataType) and node.this.name not in TYPES:
            raise ToolArgumentError("the type in a CAST is refused; cast to text, integer, numeric, date or timestamp")
        elif isinstance(node, exp.In) and node.args.get("field"):
            raise ToolArgumentError("IN takes a list or a query in parentheses: x IN (SELECT ...)")


def function_name(node: Any) -> str:
    """A function's name as the lists have it; for one that sqlglot doesn't know, the name as written."""
    exp = load_sqlglot().exp
    return str(node.name if isinstance(node, exp.Anonymous | exp.AnonymousAggFunc) else node.sql_name()).upper()


def _check_written(written: str, tree: Any, dialect: Dialect, functions: Collection[str]) -> None:
    """What will run is read once more: it must name the same tables and columns, whatever the writing did."""
    again = _parsed(written, dialect, is_ours=True)
    _refuse_nodes(again, dialect, functions, written)
    if _names_in(again) != _names_in(tree):
        raise ToolArgumentError("the query can't be written so that it is safe to run; write it in a simpler way")


def _names_in(tree: Any) -> list[tuple[str, str]]:
    exp = load_sqlglot().exp
    tables = [(node.db, node.name) for node in tree.find_all(exp.Table) if isinstance(node.this, exp.Identifier)]
    return sorted([*tables, *((node.table, node.name) for node in tree.find_all(exp.Column))])


def _spelt(node: Any, dialect: Dialect, sql: str) -> str:
    """The function's name as it was written, or else in the dialect; sqlglot's own may be another."""
    if type(node).__name__ == "Collate":
        return "collate"
    if {"start", "end"} <= node.meta.keys():
        return sql[node.meta["start"] : node.meta["end"] + 1][:60].lower()
    ignore = load_sqlglot().errors.ErrorLevel.IGNORE
    return str(node.sql(dialect=dialect, comments=False, unsupported_level=ignore)).partition("(")[0][:60].lower()


def _like(name: str, functions: Collection[str], dialect: Dialect) -> list[str]:
    """Allowed functions of a similar name, as the dialect writes them."""
    import difflib

    known = {_name_in(dialect, item) for item in functions} - {""}
    if dialect == "sqlite":  # it has fewer than the guard lets through
        known &= {*_sqlite_program.FUNCTIONS.split()}
    close = difflib.get_close_matches(name.lower(), sorted(known), n=3, cutoff=0.6)
    return close or ["aggregates, arithmetic, and plain text and date functions"]


@cache
def _name_in(dialect: Dialect, function: str) -> str:
    """What the dialect calls a function of the lists; empty where it has no function for it."""
    sqlglot = load_sqlglot()
    kind = sqlglot.exp.FUNCTION_BY_NAME.get(function)
    if kind is None:  # sqlglot doesn't know it, so the name is the dialect's
        return function.lower()
    arguments = [sqlglot.exp.column(name) for name in "ab"][: len(kind.arg_types)]
    try:
        text = kind.from_arg_list(arguments).sql(dialect=dialect, unsupported_level=sqlglot.errors.ErrorLevel.RAISE)
    except Exception:  # of other arguments than it takes, or nothing that the dialect has
        return ""
    written = _CALL.match(text)
    return written[1].lower() if written else ""


def _words(kind: str) -> str:
    return {
        "Into": "INTO",
        "Lock": "FOR UPDATE or SHARE",
        "Placeholder": "a placeholder",
        "Parameter": "a variable",
    }.get(kind, kind.upper())


def _limit(tree: Any, max_rows: int) -> None:
    exp = load_sqlglot().exp
    present = tree.args.get("limit")
    if present is None:
        tree.set("limit", exp.Limit(expression=exp.Literal.number(max_rows)))
    elif isinstance(present, exp.Limit) and isinstance(present.expression, exp.Literal) and present.expression.is_int:
        present.set("expression", exp.Literal.number(min(max_rows, int(present.expression.name))))


def _written(tree: Any, dialect: Dialect, *, quoted: bool = False) -> str:
    sqlglot = load_sqlglot()
    target = sqlglot.Dialect.get_or_raise(dialect)
    if dialect == "sqlite":  # in double quotes, a name that isn't there would silently be a text
        target.IDENTIFIER_START = target.IDENTIFIER_END = "`"
    try:
        return str(
            tree.sql(dialect=target, comments=False, identify=quoted, unsupported_level=sqlglot.errors.ErrorLevel.RAISE)
        )
    except sqlglot.errors.UnsupportedError as error:
        raise ToolArgumentError(f"{dialect} has no such thing: {str(error)[:200]}") from None


def load_sqlglot() -> Any:
    """The sqlglot package, imported when it is first needed."""
    try:
        import sqlglot
        import sqlglot.errors
    except ImportError:
        raise MissingExtraError("SQL", "tools") from None
    return sqlglot
