"""What tables a database has, and the part of it that a principal may see, as text for the model."""

from __future__ import annotations

import sqlite3
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from graphrag_agent.tools._database_access import Access
from graphrag_agent.tools._sql_tables import VisibleTable
from graphrag_agent.tools._sql_vocabulary import Dialect

MAX_TABLES = 1_000
MAX_COMMENT_CHARACTERS = 200


@dataclass(frozen=True)
class ColumnInfo:
    """What the database says of a column."""

    type_name: str
    comment: str = ""


@dataclass(frozen=True)
class ForeignKey:
    """Columns that point to another table's."""

    columns: tuple[str, ...]
    table: str
    """The other table's shown name."""
    other_columns: tuple[str, ...]


@dataclass(frozen=True)
class TableInfo(VisibleTable):
    """A table or view with what the database says of it, all of it or what a principal may see of it."""

    described: Mapping[str, ColumnInfo] = field(default_factory=dict, compare=False)
    """By column; of those that are hidden too."""
    is_view: bool = False
    comment: str = ""
    primary_key: tuple[str, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()


def read_tables(
    inspector: Any,
    schemas: Sequence[str | None],
    is_needed: Callable[[str], bool],
    *,
    written: str = "",
    one_by_one: bool = False,
) -> tuple[TableInfo, ...]:
    """All tables and views of the schemas; `written` is what stands for a schema that has no name here.

    One that can't be read, such as a view of a table that is gone, has no columns, and so have those after many that
    aren't needed by their shown name. Such a one stops no other if they are read `one_by_one`, which takes a statement
    or more for each.
    """
    found: list[TableInfo] = []
    for position, schema in enumerate(schemas):
        names = inspector.get_table_names(schema=schema)
        views = [*inspector.get_view_names(schema=schema), *_materialized(inspector, schema)]
        names = [*names, *views]
        needed = {name for name in names if is_needed(f"{schema}.{name}" if position else name)}
        others = [name for name in names if name not in needed]
        read = [*needed, *others[: max(0, MAX_TABLES - len(found) - len(needed))]]
        described: dict[str, dict[str, Any]] = {}
        for batch in ([name] for name in read) if one_by_one else filter(None, [read]):
            described |= _described(inspector, schema, batch, schemas)
        found += [
            TableInfo(
                name=name,
                schema=schema or written,
                needs_schema=position > 0,
                is_view=name in views,
                **described.get(name, {"columns": ()}),
            )
            for name in names
        ]
    return tuple(found)


def _materialized(inspector: Any, schema: str | None) -> list[str]:
    try:
        return list(inspector.get_materialized_view_names(schema=schema))
    except NotImplementedError:  # SQLite has none
        return []


def _described(
    inspector: Any, schema: str | None, names: Sequence[str], schemas: Sequence[str | None]
) -> dict[str, dict[str, Any]]:
    """Name -> fields of its `TableInfo`, for the tables that can be read."""
    from sqlalchemy.engine.reflection import ObjectKind, ObjectScope
    from sqlalchemy.exc import DBAPIError

    wanted = {"schema": schema, "filter_names": names, "kind": ObjectKind.ANY, "scope": ObjectScope.ANY}
    try:
        columns = _by_name(inspector.get_multi_columns(**wanted))
        primary = _by_name(inspector.get_multi_pk_constraint(**wanted))
        foreign = _by_name(inspector.get_multi_foreign_keys(**wanted))
        comments = _comments(inspector, wanted)
    except DBAPIError as error:
        code = getattr(error.orig, "sqlite_errorcode", None)
        if code is None or code & 0xFF != sqlite3.SQLITE_ERROR:
            raise
        return {}  # what the table says makes no sense; whatever else went wrong is not the table's fault
    return {
        name: {
            "columns": tuple(item["name"] for item in items),
            "described": {item["name"]: _column(item, inspector.dialect) for item in items},
            "comment": comments.get(name, {}).get("text") or "",
            "primary_key": tuple(primary.get(name, {}).get("constrained_columns") or ()),
            "foreign_keys": tuple(_foreign_key(key, schemas) for key in foreign.get(name, ())),
        }
        for name, items in columns.items()
    }


def _by_name(found: dict[tuple[str | None, str], Any]) -> dict[str, Any]:
    return {name: value for (_, name), value in found.items()}


def _comments(inspector: Any, wanted: dict[str, Any]) -> dict[str, Any]:
    try:
        return _by_name(inspector.get_multi_table_comment(**wanted))
    except NotImplementedError:  # SQLite keeps none
        return {}


def _column(item: Any, dialect: Any) -> ColumnInfo:
    """With its type as the database writes it; an enum is no VARCHAR there, and an array has a type of its own."""
    from sqlalchemy.exc import CompileError

    try:
        type_name = str(item["type"].compile(dialect=dialect))
    except CompileError:  # SQLAlchemy doesn't know it
        type_name = ""
    return ColumnInfo(type_name, item.get("comment") or "")


def _foreign_key(key: Any, schemas: Sequence[str | None]) -> ForeignKey:
    is_elsewhere = key["referred_schema"] is not None and key["referred_schema"] != schemas[0]
    other = f"{key['referred_schema']}.{key['referred_table']}" if is_elsewhere else key["referred_table"]
    return ForeignKey(tuple(key["constrained_columns"]), other, tuple(key["referred_columns"]))


def visible_part(tables: Iterable[TableInfo], access: Access, dialect: Dialect) -> tuple[TableInfo, ...]:
    """The tables, columns and keys that the access opens; a key that leads to something hidden is left out."""
    opened = []
    for table in tables:
        names = access.visible(table.shown_name, table.columns, is_view=table.is_view, dialect=dialect)
        if names:
            key = table.primary_key if {*table.primary_key} <= {*names} else ()
            is_whole = access.opens_whole(table.shown_name, is_view=table.is_view, dialect=dialect)
            opened.append(replace(table, columns=names, primary_key=key, hides_columns=not is_whole))
    known = {table.shown_name: {*table.columns} for table in opened}
    return tuple(
        replace(table, foreign_keys=tuple(key for key in table.foreign_keys if _is_visible(key, table, known)))
        for table in opened
    )


def _is_visible(key: ForeignKey, table: TableInfo, known: dict[str, set[str]]) -> bool:
    return {*key.columns} <= known[table.shown_name] and {*key.other_columns} <= known.get(key.table, set())


def render_schema(tables: Sequence[TableInfo], *, max_characters: int) -> tuple[str, list[str]]:
    """The tables as lines, and the names of those that did not fit.

    One that doesn't fit as a whole has its last columns by name only; the first is cut even there.
    """
    text, left_out = "", list[str]()
    for table in tables:
        room = max_characters - len(text)
        part = _render_table(table, room)
        if not text:
            part = part[:room]
        if len(part) > room:
            left_out.append(table.shown_name)
        else:
            text += part
    return text.rstrip("\n"), left_out


def _render_table(table: TableInfo, room: int) -> str:
    """With as many whole columns as there is room for; none may still be too long."""
    head = f"{'view' if table.is_view else 'table'} {table.shown_name}{_after(table.comment)}\n"
    columns = [_column_line(table, name) for name in table.columns]
    keys = _key_lines(table)

    def cut(whole: int) -> str:
        names = table.columns[whole:]
        more = [f"  … {len(names)} more columns: {', '.join(names)}"] if names else []
        return head + "".join(f"{line}\n" for line in [*columns[:whole], *more, *keys])

    everything = cut(len(columns))
    if len(everything) <= room:
        return everything
    whole = bisect_right(range(len(columns)), room, key=lambda count: len(cut(count)))
    return cut(max(0, whole - 1))


def _column_line(table: TableInfo, name: str) -> str:
    column = table.described[name]
    marks = ["primary key"] if table.primary_key == (name,) else []
    marks += [f"-> {key.table}({', '.join(key.other_columns)})" for key in table.foreign_keys if key.columns == (name,)]
    return " ".join(filter(None, [f"  {name}", column.type_name, *marks])) + _after(column.comment)


def _key_lines(table: TableInfo) -> list[str]:
    """The keys of several columns."""
    lines = [f"  primary key ({', '.join(table.primary_key)})"] if len(table.primary_key) > 1 else []
    return lines + [
        f"  ({', '.join(key.columns)}) -> {key.table}({', '.join(key.other_columns)})"
        for key in table.foreign_keys
        if len(key.columns) > 1
    ]


def _after(comment: str) -> str:
    one_line = " ".join(comment.split())
    return f" -- {one_line[:MAX_COMMENT_CHARACTERS]}" if one_line else ""
