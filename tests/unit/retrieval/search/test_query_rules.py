"""Extra queries that need no model."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_agent.retrieval.search.query_rules import extra_queries


@pytest.mark.parametrize(
    ("query", "among"),
    [
        ("What is the warranty of the pump and how is the filter cleaned?", "What is the warranty of the pump"),
        ("What is the warranty of the pump and how is the filter cleaned?", "how is the filter cleaned?"),
        ("Wie lange gilt die Garantie und wer zahlt den Versand?", "wer zahlt den Versand?"),
        ("Сколько дней отпуска и кто его утверждает заранее?", "кто его утверждает заранее?"),
        ("远程办公每周最多几天以及年假有多少天？", "年假有多少天？"),
        ("Who pays? How many days of leave?", "How many days of leave?"),
        ('Which page says "rain on the roof"?', "rain on the roof"),
        ("哪一页写着「屋顶漏水」？", "屋顶漏水"),
        ("What does E-1042 mean on an SKU-99/A?", "E-1042"),
        ("What does E-1042 mean on an SKU-99/A?", "SKU-99/A"),
        ("Why do I see ERR_CONN_RESET?", "ERR_CONN_RESET"),
        ("How long does the battery last?", "long battery last?"),
    ],
)
def test_parts_names_quotes_and_content_words_are_queries_of_their_own(query: str, among: str) -> None:
    assert among.rstrip("?？") in [found.rstrip("?？") for found in extra_queries(query)]


@pytest.mark.parametrize("query", ["pump", "bread and butter"])
def test_single_words_beside_a_conjunction_are_no_parts(query: str) -> None:
    assert all(found in {query, "bread butter"} for found in extra_queries(query))


def test_two_names_are_two_queries_and_one_alone_is_none() -> None:
    found = extra_queries("Were Scott Derrickson and the Bank of England mentioned by Ed Wood?")
    assert found[:3] == ["Scott Derrickson", "Bank of England", "Ed Wood"]
    assert extra_queries("When was Scott Derrickson born?") == ["Scott Derrickson born"]
    assert extra_queries("Кто старше, Анна Ахматова или Иван Бунин?")[:2] == ["Анна Ахматова", "Иван Бунин"]


def test_identifiers_come_before_parts_and_words_alone_are_for_questions_without_either() -> None:
    found = extra_queries("How do I clear E-1042 and who pays for the new filter?")
    assert found == [
        "E-1042",
        "How do I clear E-1042",
        "who pays for the new filter?",
    ]


@given(st.text(max_size=300))
def test_whatever_the_query_none_is_blank(query: str) -> None:
    assert [found for found in extra_queries(query) if not found.strip()] == []
