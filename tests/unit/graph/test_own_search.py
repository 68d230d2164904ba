"""What the loop searches with where no model writes a query."""

from __future__ import annotations

import time

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from graphrag_agent.graph.own_search import MAX_QUERY_CHARACTERS, question_as_query


def thread(*questions: str) -> list[BaseMessage]:
    *earlier, newest = questions
    turns = [message for question in earlier for message in (HumanMessage(question), AIMessage("Ten days."))]
    return [*turns, HumanMessage(newest)]


@pytest.mark.parametrize(
    ("questions", "query"),
    [
        (["How long is sick leave?"], "How long is sick leave?"),
        (["How long is sick leave?", "What does a hotel cost?"], "What does a hotel cost?"),
        (["How long is sick leave?", "And parental leave?"], "parental leave sick"),
        (["How long is sick leave?", "Compare the S2 and the G4"], "Compare the S2 and the G4"),
        (["病假有多少天？", "那年假呢？"], "年假 病假 天"),
        (["And parental leave?"], "And parental leave?"),
        ([""], ""),
        (["  "], ""),
        (["x" * 5_000], "x" * MAX_QUERY_CHARACTERS),
    ],
)
def test_a_question_that_leans_on_those_before_it_has_their_words(questions: list[str], query: str):
    assert question_as_query(thread(*questions)) == query


def test_without_a_question_there_is_no_query():
    assert question_as_query([AIMessage("Hello.")]) == ""


def test_a_long_thread_costs_no_more_than_a_short_one():
    def seconds(turns: int) -> float:
        messages = thread(*["How long is sick leave?"] * turns, "And parental leave?")
        began = time.thread_time()
        for _ in range(20):
            question_as_query(messages)
        return time.thread_time() - began

    seconds(10)
    assert min(seconds(10_000) for _ in range(3)) < 3 * min(seconds(10) for _ in range(3)) + 0.01
