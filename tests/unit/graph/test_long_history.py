"""Which turns of a thread are shown, what stands for the others, and how all of it fits a window."""

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from graphrag_agent.citations import Evidence
from graphrag_agent.context import Budget
from graphrag_agent.graph.loop import Instructions
from graphrag_agent.graph.prompts.building import build_prompt
from graphrag_agent.graph.prompts.digest import Summary, digest_lines, earlier_turns, turns_to_sum_up
from graphrag_agent.graph.prompts.history import split_history, tokens_of, turns_backwards
from graphrag_agent.graph.prompts.window import room_in, within_window
from graphrag_agent.token_estimate import estimate_tokens
from graphrag_agent.tools.evidence_message import render_evidence
from tests.pairing_rule import pairing_problems

LENGTHS = st.integers(0, 400)
NATIVE = Instructions("native")


def turn(number: int, words: int = 20) -> list[BaseMessage]:
    return [
        HumanMessage(f"Question {number}?", id=f"q{number}"),
        AIMessage(f"Right. Fact {number} holds [k3f2a]. Then {'word ' * words}", id=f"a{number}"),
    ]


def thread(turns: int, words: int = 20) -> list[BaseMessage]:
    return [message for number in range(turns) for message in turn(number, words)] + [HumanMessage("Now?", id="now")]


@st.composite
def histories(draw: st.DrawFn) -> list[BaseMessage]:
    """Threads as they come: a greeting, unanswered questions, several answers; a question at the end."""
    kinds = draw(st.lists(st.tuples(st.sampled_from("qa"), LENGTHS), max_size=30))
    made: list[BaseMessage] = []
    for number, (kind, length) in enumerate([*kinds, ("q", draw(LENGTHS))]):
        message: type[BaseMessage] = HumanMessage if kind == "q" else AIMessage
        made.append(message("x" * length, id=str(number)))
    return made


@given(histories(), st.integers(0, 500))
def test_the_newest_question_is_whole_and_the_rest_are_whole_turns_within_the_limit(
    history: list[BaseMessage], limit: int
):
    recent, left_out = split_history(history, limit)
    assert recent[-1] is history[-1]
    assert sum(map(tokens_of, recent[:-1])) <= limit
    shown = {message.id for message in recent}
    for start, end in turns_backwards(history, len(history)):
        ids = {message.id for message in history[start:end]}
        assert ids <= shown or not ids & shown, "a turn is shown whole or not at all"
    assert not shown & {message.id for message in history[:left_out]}
    passed_over = [message for message in history[left_out:] if message.id not in shown]
    assert all(isinstance(message, HumanMessage) for message in passed_over), "only questions without an answer"


def test_a_huge_question_that_got_no_answer_hides_nothing_before_it():
    history = [*turn(1), HumanMessage("x" * 100_000, id="huge"), HumanMessage("Now?", id="now")]
    recent, left_out = split_history(history, 200)
    assert ([message.id for message in recent], left_out) == (["q1", "a1", "now"], 0)


def test_a_line_has_the_question_and_the_first_cited_sentence_without_ids():
    (line,) = digest_lines(turn(7), 0, 2, 1_000)
    assert line == "- Question 7? -> Fact 7 holds."


def test_an_answer_without_citations_is_told_by_its_first_sentence():
    history = [HumanMessage("Hi?"), AIMessage("Hello to you. What is it?")]
    assert digest_lines(history, 0, 2, 1_000) == ["- Hi? -> Hello to you."]


@given(histories(), st.integers(0, 300))
def test_a_digest_stays_within_its_tokens(history: list[BaseMessage], limit: int):
    assert sum(estimate_tokens(line) for line in digest_lines(history, 0, len(history), limit)) <= limit


def test_the_newest_of_the_turns_left_out_are_in_the_digest():
    lines = digest_lines(thread(50), 0, 80, 100)
    assert 0 < len(lines) < 20
    assert lines[-1].startswith("- Question 39?")


def test_earlier_turns_are_a_question_and_an_answer():
    pair = earlier_turns(thread(9), 10, Summary("They spoke of leave.", 4, "a1"), 500)
    assert [message.type for message in pair] == ["human", "ai"]
    lines = pair[1].text.splitlines()
    assert lines[1] == "They spoke of leave."
    assert [line.partition("?")[0] for line in lines[2:]] == ["- Question 2", "- Question 3", "- Question 4"]


def test_a_summary_of_a_beginning_that_is_no_longer_there_counts_for_nothing():
    history = thread(3)
    channel = {"text": "About leave.", "covers": 4, "last": "a1"}
    assert Summary.of(channel, history).text == "About leave."
    assert Summary.of(channel, history[2:]) == Summary()
    assert Summary.of(channel, history[:2]) == Summary()
    assert Summary.of({}, history) == Summary()


def test_a_summary_is_written_once_for_many_turns():
    limits = Budget(max_history_tokens=800, history_summary="model")
    summary, calls = Summary(), 0
    for turns in range(200):
        history = thread(turns)
        if span := turns_to_sum_up(history, summary, limits):
            calls += 1
            summary = Summary("So far.", span[1], history[span[1] - 1].id or "")
    assert 10 <= calls <= 60
    assert turns_to_sum_up(thread(200), summary, Budget(max_history_tokens=800)) is None, "extract needs no model"


def results(count: int, length: int) -> list[BaseMessage]:
    made: list[BaseMessage] = []
    for number in range(count):
        made.append(AIMessage("", tool_calls=[{"name": "t", "args": {"n": number}, "id": str(number)}]))
        made.append(ToolMessage("word. " * length, tool_call_id=str(number), name="t"))
    return made


@pytest.mark.parametrize("window", [2_000, 4_000, 16_000, 128_000])
@pytest.mark.parametrize("question", [10, 3_000])
@pytest.mark.parametrize("summary", ["off", "extract"])
def test_a_prompt_stays_within_the_window(window: int, question: int, summary: Any):
    limits = within_window(Budget(history_summary=summary), window)
    history = [*thread(300, 60), HumanMessage("x" * question, id="now")]
    prompt = build_prompt(NATIVE, history, results(8, 400), limits, schema_tokens=150)
    assert sum(map(tokens_of, prompt)) + 150 <= room_in(limits) + 8 * 80, "what is said of each cut comes on top"
    assert pairing_problems(prompt) == []
    asked = [message for message in prompt if isinstance(message, HumanMessage)][-1]
    assert asked.text.endswith("x" * question), "the question is never cut"
    assert len([message for message in prompt if isinstance(message, ToolMessage)]) == 8, "no result is dropped"


def test_later_results_of_a_turn_are_kept_longer_than_earlier_ones():
    limits = Budget(max_prompt_tokens=4_000)
    prompt = build_prompt(NATIVE, thread(1), results(4, 1_200), limits)
    sizes = [len(message.text) for message in prompt if isinstance(message, ToolMessage)]
    assert sizes[-1] > 3 * sizes[0]


def test_what_fits_is_not_touched():
    turn_ = results(3, 20)
    prompt = build_prompt(NATIVE, thread(2), turn_, Budget())
    assert prompt[1:] == [*thread(2), *turn_]


@pytest.mark.parametrize("window", [None, 0, -1, 10**9])
def test_an_unknown_or_huge_window_leaves_the_budget_as_it_is(window: int | None):
    assert within_window(Budget(), window) == Budget()


def test_a_small_window_narrows_what_a_turn_may_show():
    limits = within_window(Budget(), 8_000)
    assert (limits.max_prompt_tokens, limits.max_evidence_tokens, limits.max_history_tokens) == (8_000, 4_000, 2_000)


@pytest.mark.parametrize("summary", ["off", "extract"])
def test_a_prompt_of_a_thread_ten_times_as_long_costs_the_same(summary: Any):
    limits = Budget(max_history_tokens=2_000, history_summary=summary)

    def cost(history: list[BaseMessage]) -> float:
        took = []
        for _ in range(30):
            began = time.process_time()
            build_prompt(NATIVE, history, (), limits)
            took.append(time.process_time() - began)
        return min(took)

    short, long = thread(200), thread(2_000)
    assert cost(long) <= 1.5 * cost(short)


@pytest.mark.parametrize("question", [10, 9_000])
def test_evidence_of_one_search_stays_within_the_window_too(question: int):
    limits = within_window(Budget(), 8_000)
    history = [*thread(30, 60), HumanMessage("x" * question, id="now")]
    content, artifact = render_evidence([_evidence(number) for number in range(8)])
    asked = AIMessage("", tool_calls=[{"name": "knowledge_search", "args": {"query": "x"}, "id": "1"}])
    result = ToolMessage(content, tool_call_id="1", name="knowledge_search", artifact=artifact)
    prompt = build_prompt(Instructions("one_shot"), history, [asked, result], limits)
    assert sum(map(tokens_of, prompt)) <= room_in(limits) + 80
    assert "<evidence id=" in prompt[0].text


def _evidence(number: int) -> Evidence:
    text = f"Fact {number} holds for all of us. " * 60
    return Evidence(f"k{number + 2}aaa", f"c{number}", "d", "T", "s.md", None, "", 1.0, 0, len(text), text)


def test_a_long_summary_is_cut_for_a_run_with_less_room():
    summary = Summary("They spoke of leave at some length. " * 200, 4, "a1")
    pair = earlier_turns(thread(9), 10, summary, 100)
    assert 0 < sum(map(tokens_of, pair)) < 200
    assert "They spoke of leave" in pair[1].text
