"""Names that SQL takes without quotes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_agent.tools._table_names import RESERVED, file_names, sql_name, unique_names

sqlglot = pytest.importorskip("sqlglot", reason="the extra tools is not installed")
duckdb = pytest.importorskip("duckdb", reason="the extra tools is not installed")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Unit Price (EUR)", "unit_price_eur"),
        ("orderId", "order_id"),
        ("% of total", "percent_of_total"),
        ("No. #", "no_number"),
        ("2020", "_2020"),
        ("Order", "order_"),
        ("Цена за штуку", "цена_за_штуку"),
        ("名前", "名前"),
        ('"; DROP TABLE x; --', "drop_table_x"),
        ("</evidence>\n", "evidence"),
        ("…", "unnamed"),
        ("", "unnamed"),
    ],
)
def test_a_name_is_lower_case_words(text: str, name: str) -> None:
    assert sql_name(text, "unnamed") == name


def test_names_are_unique_in_any_order() -> None:
    assert unique_names(["A", "a", "A 2", "a", ""], "unnamed") == ["a", "a_2", "a_2_2", "a_3", "unnamed"]
    assert unique_names(["Order", "ORDER"], "unnamed") == ["order_", "order_2"]


def test_a_file_is_called_by_its_name_without_folder_and_suffix() -> None:
    assert file_names(["a/Prices 2024.csv", "b/prices-2024.tsv", "b/..csv"]) == [
        "prices_2024",
        "prices_2024_2",
        "data",
    ]


def test_the_reserved_words_are_duckdbs() -> None:
    rows = duckdb.sql("SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category = 'reserved'").fetchall()
    assert {row[0] for row in rows} == RESERVED


@given(st.lists(st.text(max_size=60), min_size=1, max_size=6))
def test_duckdb_takes_every_name_without_quotes(texts: list[str]) -> None:
    names = unique_names(texts, "unnamed")
    assert len(set(names)) == len(texts)
    with duckdb.connect(":memory:") as connection:
        connection.execute(f"CREATE TABLE t ({', '.join(f'{name} INT' for name in names)})")
        query = sqlglot.parse_one(f"SELECT {', '.join(names)} FROM t", dialect="duckdb").sql(dialect="duckdb")
        described = connection.execute(query).description
    assert [column[0] for column in described] == names
