"""Defog's questions through the tool: each gold query gives the rows that SQLite gives for it, a wrong one its mend.

Of the databases only the schemas are beside this checkout, not the rows. So they are filled with made rows, in which
the texts of the queries occur, and the rows that the gold query itself gives are the gold rows. Defog's own rows, where
they are at hand, are test_database_query_gold_rows.py's.
"""

from __future__ import annotations

import json
import random
import sqlite3
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graphrag_agent.errors import ToolArgumentError
from graphrag_agent.tools._query_result import Rows, render_table, value_text
from graphrag_agent.tools._sql_guard import checked_query
from graphrag_agent.tools._sql_tables import VisibleTable
from graphrag_agent.tools.database_query import MAX_ROWS
from tests.defog import DEFOG, asking, gold_queries, table_lines

ROWS_A_TABLE = 14
QUERIES = {database: [query.sql for query in queries] for database, queries in gold_queries().items()}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not DEFOG.is_dir(), reason="Defog's questions are not beside this checkout (../shared/data)"),
]


def schema(database: str) -> dict[str, list[dict[str, str]]]:
    text = (DEFOG / "metadata" / f"{database}.json").read_text()
    return json.loads(text)["table_metadata"]  # type: ignore[no-any-return]


def texts_of(queries: list[str]) -> list[str]:
    import sqlglot
    from sqlglot import exp

    found = {
        literal.name.strip("%")
        for query in queries
        for literal in sqlglot.parse_one(query, dialect="sqlite").find_all(exp.Literal)
        if literal.is_string
    }
    return sorted(found - {""})


def made_value(column: dict[str, str], chance: random.Random, texts: list[str]) -> Any:
    kind = column["data_type"].lower()
    if "int" in kind:
        return chance.randint(1, 6)
    if any(word in kind for word in ("double", "numeric", "real", "float", "decimal")):
        return chance.randint(1, 50) / 4
    if "date" in kind or "time" in kind:
        return f"20{chance.randint(18, 26)}-0{chance.randint(1, 9)}-1{chance.randint(0, 9)}"
    return chance.choice([*texts, None])


@pytest.fixture(scope="module", params=sorted(QUERIES) or ["none"])
def database(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    name, chance = request.param, random.Random(7)
    file = tmp_path_factory.mktemp(name) / "made.db"
    connection = sqlite3.connect(file)
    texts = texts_of(QUERIES[name])
    for table, columns in schema(name).items():
        listed = ", ".join(f'"{column["column_name"]}" {column["data_type"]}' for column in columns)
        connection.execute(f'CREATE TABLE "{table}" ({listed})')
        rows = [[made_value(column, chance, texts) for column in columns] for _ in range(ROWS_A_TABLE)]
        connection.executemany(f'INSERT INTO "{table}" VALUES ({", ".join("?" * len(columns))})', rows)
    connection.commit()
    connection.close()
    yield name, file


async def test_each_gold_query_gives_its_rows_and_many_have_some(database: tuple[str, Path]) -> None:
    name, file = database
    ask = asking(name, file)
    connection = sqlite3.connect(file)
    filled = 0
    for sql in QUERIES[name]:
        cursor = connection.execute(sql)
        columns = [item[0] for item in cursor.description]
        wanted = [[value_text(value) for value in row] for row in cursor.fetchall()]
        text = await ask(sql)
        shown, all_lines = table_lines(text)[2:], table_lines(render_table(Rows(columns, wanted, False)))[2:]
        if len(wanted) <= MAX_ROWS and "there are more" not in text:
            assert Counter(shown) == Counter(all_lines), sql
        else:
            assert not Counter(shown) - Counter(all_lines), sql
        filled += any(value not in (None, "0") for row in wanted for value in row)
    connection.close()
    assert filled >= 0.5 * len(QUERIES[name])


def test_the_rows_are_the_same_where_all_other_columns_are_hidden(database: tuple[str, Path]) -> None:
    import sqlglot
    from sqlglot import exp

    name, file = database
    connection = sqlite3.connect(file)
    for sql in QUERIES[name]:
        used = {column.name.lower() for column in sqlglot.parse_one(sql, dialect="sqlite").find_all(exp.Column)}
        tables = []
        for table, columns in schema(name).items():
            names = tuple(item["column_name"] for item in columns)
            visible = tuple(column for column in names if column.lower() in used) or names[:1]
            tables.append(VisibleTable(table, visible, "main", hides_columns=True))
        query = checked_query(sql, dialect="sqlite", tables=tables)
        assert Counter(connection.execute(query.sql)) == Counter(connection.execute(sql)), sql
    connection.close()


def test_a_misspelt_column_or_table_is_named_with_its_mend(database: tuple[str, Path]) -> None:
    import sqlglot
    from sqlglot import exp

    name, _ = database
    tables = [
        VisibleTable(table, tuple(item["column_name"] for item in columns), "main")
        for table, columns in schema(name).items()
    ]
    tried = 0
    for sql in QUERIES[name]:
        for kind in (exp.Column, exp.Table):
            tree = sqlglot.parse_one(sql, dialect="sqlite")
            node = tree.find(kind)
            ctes = {cte.alias for cte in tree.find_all(exp.CTE)}
            if node is None or len(node.name) < 4 or node.name in ctes or any(tree.find_all(exp.CTE)):
                continue
            right = node.name
            node.this.set("this", right[0] + right[2] + right[1] + right[3:] + "q")
            with pytest.raises(ToolArgumentError) as caught:
                checked_query(tree.sql(dialect="sqlite"), dialect="sqlite", tables=tables)
            assert right.lower() in str(caught.value).lower(), sql
            tried += 1
    assert tried > len(QUERIES[name]) / 2
