"""A whole answer: which sentence each mark stands for, what is told of it, where its sources disagree."""

import json
import time
from collections.abc import Callable
from dataclasses import asdict, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_agent.answer_check.checking import AnswerCheck, check_answer, draws_on
from graphrag_agent.answer_check.claims import find_claims
from graphrag_agent.answer_check.dates import find_dates
from graphrag_agent.answer_check.numbers import find_quantities
from graphrag_agent.citations import Evidence, resolve_citations
from graphrag_agent.tools.made_evidence import made_evidence

LEAVE = "Sick leave lasts 10 days a year. It is paid in full.\n\nParental leave lasts twenty weeks."
TRAVEL = "Trains are booked in second class. Receipts are required for expenses over $75."
IDS = ("k3f2a", "m7xw2", "p4q5r")


def evidence(*texts: str, headings: tuple[str, ...] = ("", "", ""), documents: str = "abc") -> dict[str, Evidence]:
    return {
        id_: Evidence(id_, f"c{id_}", document, "", f"{document}.md", None, heading, 1.0, 50, 50 + len(text), text)
        for id_, text, heading, document in zip(IDS, texts, headings, documents, strict=False)
    }


def check(answer: str, *texts: str, **more: object) -> AnswerCheck:
    shown = evidence(*texts, **more)  # type: ignore[arg-type]
    return check_answer(resolve_citations(answer, shown), shown)


@pytest.mark.parametrize(
    ("answer", "claims"),
    [
        ("A b c [k3f2a].", [("A b c .", ("k3f2a",))]),
        ("A b c. [k3f2a] D e f.", [("A b c.", ("k3f2a",))]),
        ("A b c [k3f2a][m7xw2]. D e [m7xw2].", [("A b c .", ("k3f2a", "m7xw2")), ("D e .", ("m7xw2",))]),
        ("A b [k3f2a], c d [m7xw2].", [("A b", ("k3f2a",)), (", c d .", ("m7xw2",))]),
        ("A b [k3f2a] c d e.", [("A b  c d e.", ("k3f2a",))]),
        ("[k3f2a] A b c.", [("A b c.", ("k3f2a",))]),
        ("- A b [k3f2a]\n- C d [m7xw2]", [("A b", ("k3f2a",)), ("C d", ("m7xw2",))]),
        ("甲乙丙。[k3f2a]丁戊己[m7xw2]。", [("甲乙丙。", ("k3f2a",)), ("丁戊己。", ("m7xw2",))]),
        ("A b c. D e f.", []),
    ],
)
def test_a_mark_stands_for_the_sentence_it_is_in_or_the_one_before(answer: str, claims: list[tuple[str, tuple[str]]]):
    found = find_claims(resolve_citations(answer, evidence("x", "y")))
    assert [(claim.text, claim.ids) for claim in found] == claims
    for claim in found:
        assert all(id_ in answer[claim.start : claim.end] for id_ in claim.ids)


def test_counts_the_worst_of_each_citation_and_the_doubts():
    told = check(
        "Sick leave lasts 10 days a year [k3f2a]. It is not paid in full [k3f2a]. Trains are booked [m7xw2].",
        *(LEAVE, TRAVEL),
    ).told
    assert (told["supported"], told["weak"], told["unsupported"]) == (2, 0, 1)
    assert told["citations"] == {"k3f2a": "unsupported", "m7xw2": "supported"}
    assert told["doubts"] == [
        {"start": 41, "end": 72, "ids": ["k3f2a"], "support": "unsupported", "reasons": ["one of the two says not"]}
    ]
    assert json.loads(json.dumps(told)) == told


def test_an_answer_without_citations_has_nothing_to_tell():
    assert check("Hello.", LEAVE).told == {}


def test_quotes_are_the_sentences_with_their_places_in_the_document():
    (citation,) = check("It lasts twenty weeks when you become a parent, as parental leave [k3f2a].", LEAVE).citations
    quote = citation.quotes[-1]
    assert quote.text == "Parental leave lasts twenty weeks."
    assert LEAVE[quote.start - 50 : quote.end - 50] == quote.text


def test_two_sources_of_one_sentence_are_read_together():
    both = check("Sick leave lasts 10 days a year and trains are booked in second class [k3f2a, m7xw2].", LEAVE, TRAVEL)
    assert both.counts == {"supported": 1}
    alone = check("Sick leave lasts 10 days a year and trains are booked in second class [k3f2a].", LEAVE, TRAVEL)
    assert alone.counts == {"weak": 1}


@pytest.mark.parametrize(
    ("one", "other", "values"),
    [
        ("Sick leave lasts 10 days a year.", "Sick leave lasts 12 days a year.", ("10 days", "12 days")),
        ("Sick leave lasts 10 days a year.", "Sick leave is twelve days a year.", ("10 days", "twelve days")),
        ("The report is due on 5 March 2024.", "The report is due on 2024-03-06.", ("5 march 2024", "2024-03-06")),
        ("Отпуск длится 28 дней в году.", "Отпуск составляет 24 дня в году.", ("28 дней", "24 дня")),
        ("病假每年为10天。", "病假每年为12天。", ("10天", "12天")),
    ],
)
def test_sources_that_disagree_are_named(one: str, other: str, values: tuple[str, str]):
    (note,) = check(f"{one[:-1]} [k3f2a]. {other[:-1]} [m7xw2].", one, other).conflicts
    assert note == f"sources [k3f2a] and [m7xw2] differ: {values[0]!r} and {values[1]!r}"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Sick leave lasts 10 days a year.", "Sick leave lasts ten days a year."),
        ("Sick leave lasts 2 weeks a year.", "Sick leave lasts 14 days a year."),
        ("The Brook S2 costs 40 euros.", "The Brook S3 costs 60 euros."),
        ("Plan Blue costs 40 euros.", "Plan Green costs 60 euros."),
        ("Full-time staff get 20 days of leave.", "Part-time staff get 10 days of leave."),
        ("The first step takes 5 minutes.", "The second step takes 9 minutes."),
        ("Revenue was 5 million in 2022.", "Revenue was 7 million in 2023."),
        ("Sick leave lasts 10 days a year.", "Parental leave lasts 20 weeks a year."),
        ("SKU: A-1; Price EUR: 5.00; Unit: piece", "SKU: A-2; Price EUR: 7.00; Unit: piece"),
        ("The meeting is at 9:00 on Monday.", "The meeting is at 10:00 on Tuesday."),
        ("病假每年为10天。", "年假每年为15天。"),
        ("Отпуск длится 28 дней.", "Больничный длится 15 дней."),
    ],
)
def test_other_rows_steps_and_years_are_no_disagreement(one: str, other: str):
    assert check(f"{one[:-1]} [k3f2a]. {other[:-1]} [m7xw2].", one, other).conflicts == ()


def test_sections_of_one_document_may_have_their_own_numbers():
    texts = ("The limit for uploads is 10 days.", "The limit for uploads is 20 days.")
    answer = "The limit for uploads is 10 days [k3f2a]. The limit for uploads is 20 days [m7xw2]."
    assert check(answer, *texts, headings=("A", "B", ""), documents="aab").conflicts == ()
    assert len(check(answer, *texts, headings=("A", "A", ""), documents="aab").conflicts) == 1


@pytest.mark.parametrize(
    ("text", "is_drawn"),
    [
        ("Sick leave lasts 10 days.", True),
        ("Sick leave lasts 99 days a year.", True),
        ("Nothing was found in the documents.", False),
        ("done", False),
        ("Leider enthalten die Unterlagen darüber keine Angaben.", False),
        ("I found nothing about parental matters here, unfortunately; please try other keywords instead.", False),
        ("Больничный длится десять дней в году, он полностью оплачивается.", True),
        ("", False),
    ],
)
def test_what_an_answer_owes_to_the_evidence(text: str, is_drawn: bool):
    assert draws_on(text, list(evidence(LEAVE).values())) is is_drawn


@given(st.text(max_size=80), st.text(max_size=120))
def test_any_text_can_be_checked(answer: str, source: str):
    told = check(f"{answer} [k3f2a]", source)
    assert sum(told.counts.values()) == len(told.sentences)
    assert all(asdict(replace(citation)) for citation in told.citations)


@pytest.mark.parametrize(
    "source",
    [
        part * (20_000 // len(part))
        for part in (
            "1 ",
            "1,000,",
            "not ",
            "a-1",
            "A",
            "5 may 2024 ",
            "一",
            "except ",
            "1:2",
            "Aa ",
            "-",
            "over ",
            "two and ",
        )
    ],
)
def test_hostile_sources_cost_little(source: str):
    began = time.thread_time()  # a busy machine is no cost
    check(f"{source[:2_000]} x [k3f2a]", source)
    assert time.thread_time() - began < 4


@pytest.mark.parametrize("cited", ["Ten days [k3f2a]. ", "ten [k3f2a] ", "ten [k3f2a] days [m7xw2] "])
def test_twice_as_many_marks_take_about_twice_the_time(cited: str):
    def seconds(marks: int) -> float:
        resolved = resolve_citations(cited * marks, evidence(LEAVE, TRAVEL))
        began = time.thread_time()
        find_claims(resolved)
        return time.thread_time() - began

    # the square would take 16 times as long; the best of some, for a collection of garbage may fall into one
    assert min(seconds(2_000) for _ in range(3)) < 8 * seconds(500) + 0.2


@pytest.mark.parametrize("part", ["1 ", "1, ", "7:", "10:30 ", "3 km, ", "5 may 2024 ", "$1"])
@pytest.mark.parametrize("find", [find_quantities, find_dates])
def test_figures_of_a_text_twice_as_long_take_about_twice_the_time(part: str, find: Callable[[str], object]):
    def seconds(characters: int) -> float:
        text = part * (characters // len(part))
        began = time.thread_time()
        find(text)
        return time.thread_time() - began

    # the square would take 16 times as long; the best of some, for a collection of garbage may fall into one
    assert min(seconds(28_000) for _ in range(3)) < 8 * seconds(7_000) + 0.2


@pytest.mark.parametrize(
    ("text", "values", "unit"),
    [
        ("5,000 members", {5000}, ""),
        ("5 000 руб.", {5000}, "руб"),
        ("3,5 kg", {3.5}, "kg"),
        ("5.000", {5000, 5}, ""),
        ("1,234,567.89", {1234567.89}, ""),
        ("$1.2 million", {1_200_000}, "$"),
        ("2,5 тыс. рублей", {2500}, "рублей"),
        ("5万", {50_000}, ""),
        ("百分之五十", {50}, "%"),
        ("twenty-five days", {25}, "days"),
        ("two hundred and five", {205}, ""),
        ("三百二十天", {320}, "天"),
        ("-5 °c", {-5}, "°c"),
        ("2024 года", {2024}, ""),
        ("a one-off", set(), ""),
        ("非常重要", set(), ""),
    ],
)
def test_numbers_however_they_are_written(text: str, values: set[float], unit: str):
    found = find_quantities(text)
    assert {value for item in found for value in item.values} == values
    assert {item.unit for item in found} == ({unit} if values else set())


@pytest.mark.parametrize(
    ("text", "readings"),
    [
        ("5 march 2024", {(2024, 3, 5)}),
        ("march 5th, 2024", {(2024, 3, 5)}),
        ("2024-03-05", {(2024, 3, 5)}),
        ("05.03.2024", {(2024, 3, 5)}),
        ("3/5/2024", {(2024, 3, 5), (2024, 5, 3)}),
        ("5 марта 2024 г.", {(2024, 3, 5)}),
        ("2024年3月5日", {(2024, 3, 5)}),
        ("3月5日", {(None, 3, 5)}),
        ("march 2024", {(2024, 3, None)}),
        ("13/13/2024", set()),
        ("you may 10 times", {(None, 5, 10)}),
        ("v2.3.2024x", set()),
    ],
)
def test_dates_however_they_are_written(text: str, readings: set[tuple[int | None, int | None, int | None]]):
    assert {reading for date in find_dates(text) for reading in date.readings} == readings


@pytest.mark.parametrize(
    ("claim", "support"),
    [
        ("In the second quarter 41 pieces were sold", "supported"),
        ("One of each costs 1,940 euros together", "supported"),
        ("Es wurden 41 Stück verkauft", "supported"),
        ("In the second quarter 42 pieces were sold", "unsupported"),
        ("Sales were good", "weak"),
    ],
)
def test_a_figure_that_a_tool_worked_out_needs_no_words_around_it(claim: str, support: str):
    text = "SQL: SELECT SUM(pieces) FROM sales WHERE quarter = 2\n\n| pieces | total |\n|---|---|\n| 41 | 1940.00 |\n"
    computed = made_evidence("sql:shop:1", title="shop", source="shop", text=text, is_computed=True)
    cited = resolve_citations(f"{claim} [{computed.id}].", {computed.id: computed})
    assert check_answer(cited, {computed.id: computed}).sentences[0].support == support
