"""A property of the guard alone: whatever a query is put together from, no hidden value is in its rows."""

from __future__ import annotations

import sqlite3

from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_agent.errors import ToolArgumentError
from graphrag_agent.tools._sql_guard import checked_query
from graphrag_agent.tools._sql_tables import VisibleTable

TABLES = (
    VisibleTable("customers", ("id", "name"), "main", hides_columns=True),
    VisibleTable("orders", ("id", "customer_id"), "main"),
)
SCHEMA = """
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, secret TEXT);
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER);
CREATE TABLE vault (id INTEGER PRIMARY KEY, name TEXT, secret TEXT);
CREATE VIEW rich AS SELECT * FROM customers;
INSERT INTO customers VALUES (1, 'Ann', 'HIDDEN'), (2, 'Bob', 'HIDDEN');
INSERT INTO orders VALUES (1, 1), (2, 2);
INSERT INTO vault VALUES (1, 'HIDDEN', 'HIDDEN');
"""
NAMES = st.sampled_from(
    ["customers", "orders", "vault", "rich", "c", "main.customers", "main.vault", "with_vault", "x"]
)
ALIASES = st.sampled_from(["", " c", " AS customers", " AS vault", " x", " AS orders"])
WHAT = st.sampled_from(
    ["*", "c.*", "customers.*", "x.*", "vault.*", "secret", "c.secret", "customers.secret", "vault.secret", "x.secret"]
) | st.sampled_from(
    ["max(secret)", "name", "c.name", '"secret"', "`secret`", "[secret]", "rowid", "count(*)", "id", "1 AS secret"]
)
TAILS = st.sampled_from(
    [
        "",
        " ORDER BY secret",
        " GROUP BY secret",
        " WHERE secret LIKE 'H%'",
        " WHERE 'HIDDEN' IN (SELECT secret FROM vault)",
    ]
) | st.sampled_from(
    [
        " WHERE 1 IN vault",
        " LIMIT (SELECT id FROM vault)",
        " UNION ALL SELECT secret FROM vault",
        " HAVING secret > ''",
    ]
)


def _select(sources: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.builds(lambda what, source, tail: f"SELECT {what} FROM {source}{tail}", WHAT, sources, TAILS)


def _sources(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    one = st.one_of(
        st.builds("{}{}".format, NAMES, ALIASES),
        st.builds("({}){}".format, inner, ALIASES),
        st.builds("({}){}".format, NAMES, ALIASES),
    )
    joins = st.sampled_from([", ", " NATURAL JOIN ", " JOIN ", " LEFT JOIN ", " CROSS JOIN "])
    return st.one_of(
        one, st.builds("{}{}{}".format, one, joins, one), st.builds("{} JOIN {} USING (secret)".format, one, one)
    )


def _queries(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    select = _select(_sources(inner))
    names = st.sampled_from(["vault", "customers", "c", "x", "rich", "with_vault"])
    cte = st.builds("WITH {} AS ({}) {}".format, names, inner, select)
    two = st.builds("WITH {} AS ({}), {} AS ({}) {}".format, names, inner, names, inner, select)
    recursive = st.builds("WITH RECURSIVE {} AS ({} UNION {}) {}".format, names, inner, inner, select)
    return st.one_of(select, cte, two, recursive)


QUERIES = st.recursive(_select(st.builds("{}{}".format, NAMES, ALIASES)), _queries, max_leaves=4)


@settings(max_examples=400)
@given(QUERIES)
def test_no_hidden_value_is_in_the_rows_of_any_query(sql: str) -> None:
    try:
        query = checked_query(sql, dialect="sqlite", tables=TABLES, max_rows=50)
    except ToolArgumentError as error:
        assert "HIDDEN" not in str(error).replace(sql, "")
        return
    connection = sqlite3.connect(":memory:")
    try:
        connection.executescript(SCHEMA)
        rows = connection.execute(query.sql).fetchall()
    except sqlite3.OperationalError as error:
        assert "HIDDEN" not in str(error)
        return
    finally:
        connection.close()
    assert "HIDDEN" not in str(rows), query.sql


def test_some_of_those_queries_do_give_rows() -> None:
    """Else the property would say nothing."""
    given_rows = 0
    connection = sqlite3.connect(":memory:")
    connection.executescript(SCHEMA)
    for sql in (
        "SELECT * FROM customers c NATURAL JOIN orders x",
        "WITH vault AS (SELECT name FROM customers) SELECT vault.* FROM vault",
        "WITH customers AS (SELECT * FROM customers) SELECT customers.* FROM customers",
        "SELECT x.* FROM (SELECT c.* FROM customers c) x",
    ):
        given_rows += len(connection.execute(checked_query(sql, dialect="sqlite", tables=TABLES).sql).fetchall())
    connection.close()
    assert given_rows == 8
