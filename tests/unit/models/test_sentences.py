import re
import time
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_agent.models.sentences import _END, split_sentences


def texts(text):
    return [sentence.text for sentence in split_sentences(text)]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("Ten days a year. Unless you are new.", ["Ten days a year.", "Unless you are new."]),
        (
            "It costs 3.5 EUR, e.g. for Dr. Smith (see No. 4). Pay now!",
            ["It costs 3.5 EUR, e.g. for Dr. Smith (see No. 4).", "Pay now!"],
        ),
        ("He asked. No. You can't.", ["He asked.", "No.", "You can't."]),
        (
            "J. Smith works for the U.S. government. Since 2020.",
            ["J. Smith works for the U.S. government.", "Since 2020."],
        ),
        ("病假有十天。但是合同工没有！真的？", ["病假有十天。", "但是合同工没有！", "真的？"]),
        ("他说：“可以。”然后走了。", ["他说：“可以。”", "然后走了。"]),
        ("Отпуск, т. е. отдых, см. стр. 5. Кроме стажёров.", ["Отпуск, т. е. отдых, см. стр. 5.", "Кроме стажёров."]),
        ("Принят в 2024 г. Компания платит.", ["Принят в 2024 г.", "Компания платит."]),
    ],
)
def test_abbreviations_numbers_and_quotes_do_not_end_a_sentence(text, sentences):
    assert texts(text) == sentences


def test_markers_stay_outside_and_lines_are_told_apart():
    text = "# Leave\n\n- Ten days.\n* A note\n> Quoted words.\n1. First step\nPlan: Pro; Price: 20. Net; Users: 5\n|-|"
    assert [(s.kind, s.text) for s in split_sentences(text)] == [
        ("heading", "Leave"),
        ("item", "Ten days."),
        ("item", "A note"),
        ("prose", "Quoted words."),
        ("item", "First step"),
        ("row", "Plan: Pro; Price: 20. Net; Users: 5"),
    ]


def test_a_wrapped_line_goes_on_and_a_short_line_does_not():
    wrapped = "Employees who have worked here for more than a year\nGet ten days."
    assert texts(wrapped) == [wrapped]
    assert texts("Vacation 25 days\nSickness 10 days") == ["Vacation 25 days", "Sickness 10 days"]


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet="aB1 .!?。！\n-#>*|:;е", max_size=60))
def test_sentences_are_ordered_pieces_of_the_text(text):
    found = split_sentences(text)
    assert all(text[s.start : s.end] == s.text == s.text.strip() for s in found)
    assert all(a.end <= b.start for a, b in pairwise(found))
    covered = "".join(s.text for s in found)
    letters = [c for c in text if c.isalpha()]
    assert [c for c in covered if c.isalpha()] == letters


def test_a_long_row_that_is_none_after_all_takes_no_longer_than_another():
    cells = "".join(f"key {number}: some value; " for number in range(60))
    assert [sentence.kind for sentence in split_sentences(cells + "without a colon")] == ["prose"]
    assert [sentence.kind for sentence in split_sentences(cells + "last: one")] == ["row"]


@settings(max_examples=500, deadline=None)
@given(st.text(alphabet=".!?…。！”’»)]*_\"' \na1中", max_size=40))
def test_ends_are_those_from_any_place_in_a_row_of_stops(text):
    from_any_place = re.compile(r"[.!?…]+[\"'”’»)\]*_]*(?=\s|$)|[。！？｡]+[”’」』）\"]*")
    assert [end.span() for end in _END.finditer(text)] == [end.span() for end in from_any_place.finditer(text)]


def test_a_row_of_dots_that_ends_nothing_takes_linear_time():
    started = time.process_time()
    assert texts("Contents " + "." * 40_000 + "5") == ["Contents " + "." * 40_000 + "5"]
    assert time.process_time() - started < 5  # 25 s where every dot begins a search of its own


@pytest.mark.parametrize("part", ["A. ", "Mr. ", "a.", ".", "1. ", "a b. ", ". \n", "x" * 60 + "\n", "key: a; "])
def test_a_text_twice_as_long_takes_about_twice_the_time(part):
    def seconds(characters):
        text = part * (characters // len(part)) + "x"
        began = time.thread_time()
        split_sentences(text)
        return time.thread_time() - began

    # the square would take 16 times as long; the best of some, for a collection of garbage may fall into one
    assert min(seconds(60_000) for _ in range(3)) < 8 * seconds(15_000) + 0.2
