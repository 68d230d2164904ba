"""Where extra queries come from, and what is made of what a model writes."""

from __future__ import annotations

import asyncio
import unicodedata
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_agent.errors import KnowledgeBaseError, SettingsError
from graphrag_agent.retrieval.search import strategies
from graphrag_agent.retrieval.search.options import SearchOptions
from graphrag_agent.retrieval.search.strategies import (
    MAX_EXTRA_QUERIES,
    Strategy,
    build_strategy,
    clean_queries,
    expand_query,
)


class Writes:
    def __init__(self, written: Any) -> None:
        self.written = written
        self.asked: list[tuple[str, str]] = []

    async def write(self, query: str, kind: str) -> Sequence[str]:
        self.asked.append((query, kind))
        if isinstance(self.written, Exception):
            raise self.written
        return self.written  # type: ignore[no-any-return]


async def test_direct_asks_nobody() -> None:
    writer = Writes(["other words"])
    assert (await expand_query(Strategy("direct", writer), "pump")).queries == ()
    assert writer.asked == []


async def test_a_writers_queries_are_taken_before_rules() -> None:
    writer = Writes(["how long is the guarantee", "warranty period"])
    found = await expand_query(Strategy("multi_query", writer), "What is the warranty?")
    assert (found.queries, found.writer, found.failed) == (tuple(writer.written), "model", "")
    assert writer.asked == [("What is the warranty?", "multi_query")]


async def test_without_a_writer_rules_make_the_queries() -> None:
    found = await expand_query(Strategy("multi_query"), "Who pays for the pump? How long is the warranty?")
    assert found.queries[:2] == ("Who pays for the pump?", "How long is the warranty?")
    assert found.writer == "rules"


async def test_hyde_takes_one_passage_and_without_a_writer_says_why_there_is_none() -> None:
    found = await expand_query(Strategy("hyde", Writes(["The warranty is two years.", "x y"])), "warranty?")
    assert found.queries == ("The warranty is two years.",)
    assert (await expand_query(Strategy("hyde"), "warranty?")).failed == "no chat model to write with"


@pytest.mark.parametrize(
    ("written", "why"),
    [
        (ConnectionError("http://user:password@host"), "ConnectionError"),
        (KnowledgeBaseError("no answer"), "no answer"),
        (["", " \n", "\x00\x1b", None, 7], "the model wrote nothing to search for"),
        ("one text", "the query writer gave str instead of a list of texts"),
        (None, "the query writer gave NoneType instead of a list of texts"),
    ],
)
async def test_a_writer_that_fails_costs_its_queries_only(written: Any, why: str) -> None:
    found = await expand_query(Strategy("multi_query", Writes(written)), "pump")
    assert (found.queries, found.failed) == ((), why)


async def test_a_slow_writer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow:
        async def write(self, query: str, kind: str) -> Sequence[str]:
            await asyncio.sleep(60)
            raise AssertionError

    monkeypatch.setattr(strategies, "WRITER_SECONDS", 0.01)
    assert (await expand_query(Strategy("hyde", Slow()), "pump")).failed == "no answer within 0.01 s"


def test_what_is_said_twice_or_is_the_query_itself_is_left_out() -> None:
    assert clean_queries(["Pump?", "the  pump", "THE PUMP", "pu\u200bmp \x1b[31mred"], "pump", 300) == (
        "the pump",
        "pu mp [31mred",
    )


@given(st.lists(st.text(max_size=80), max_size=12), st.text(max_size=20), st.integers(1, 40))
def test_queries_are_few_short_and_plain(written: list[str], query: str, limit: int) -> None:
    found = clean_queries(written, query, limit)
    assert len(found) <= MAX_EXTRA_QUERIES
    assert len(set(found)) == len(found)
    for text in found:
        assert 0 < len(text) <= limit
        assert not any(unicodedata.category(sign).startswith("C") for sign in text)


def test_an_endless_writer_is_read_to_a_point() -> None:
    def endless():
        while True:
            yield "\n"

    assert clean_queries(endless(), "pump", 300) == ()


def test_hyde_without_a_writer_is_refused_when_it_is_built_and_says_what_to_do() -> None:
    with pytest.raises(SettingsError, match=r"GRAPHRAG_MODEL.*query_writer="):
        build_strategy("hyde", None)
    with pytest.raises(SettingsError, match="strategy='magic' is unknown: use one of direct, multi_query, hyde"):
        build_strategy("magic", None)
    writer = Writes([])
    assert build_strategy("hyde", writer) == Strategy("hyde", writer)


def test_one_search_may_differ_but_never_switches_the_reranker_on() -> None:
    writer = Writes([])
    usual = SearchOptions.of(fusion="rrf", strategy="direct", writer=writer, diversity=False)
    asked = usual.asked(strategy="hyde", diversity=True)
    assert (asked.fusion, asked.strategy, asked.diversity) == ("rrf", Strategy("hyde", writer), True)
    off = usual.asked(rerank=False)
    assert (off.rerank, off.asked(rerank=True).rerank, usual.asked().rerank) == (False, False, True)
    with pytest.raises(SettingsError, match="fusion='borda'"):
        usual.asked(fusion="borda")
