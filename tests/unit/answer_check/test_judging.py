"""What the check says of pairs made by hand, in English, Russian, Chinese and across."""

import pytest

from graphrag_agent.answer_check.judging import Verdict, judge
from graphrag_agent.answer_check.passages import Passage
from graphrag_agent.citations import Evidence
from tests.unit.answer_check.pairs import PAIRS


def passage(text: str, *, title: str = "", heading: str = "") -> Passage:
    return Passage(Evidence("k3f2a", "c", "d", title, "s.md", None, heading, 1.0, 100, 100 + len(text), text))


def verdict(source: str, claim: str) -> Verdict:
    return judge(claim, [passage(source)])


@pytest.mark.parametrize(("source", "claim", "expected"), PAIRS, ids=[claim for _, claim, _ in PAIRS])
def test_pairs(source: str, claim: str, expected: str):
    found = verdict(source, claim)
    assert found.support == expected, found.reasons


@pytest.mark.parametrize(
    ("source", "claim"),
    [
        ("The fee is 15 million euros.", "The fee is 1.5 million euros."),
        ("The fee is 1.5 million euros.", "The fee is 1."),
        ("The fee is 5 million euros.", "The fee is 5."),
        ("The fee is five million euros.", "The fee is five."),
        (".5 kg may be sent by post.", "5 kg may be sent by post."),
        ("Employees get 15 days of sick leave.", "5 days of sick leave."),
        ("The fee is €50 a month.", "The fee is $50 a month."),
        ("Store it at 5 °C.", "Store it at -5 °C."),
        ("Not all employees get parental leave.", "All employees get parental leave."),
        ("It is not true that smoking is allowed in the lobby.", "Smoking is allowed in the lobby."),
        ("Interns are unable to vote.", "Able to vote."),
        ("员工有15天病假。", "5天病假。"),
        ("The printer HP1020 is in room three.", "HP102 is the printer in room three."),
        ("Не все сотрудники получают отпуск.", "Все сотрудники получают отпуск."),
    ],
)
def test_letters_that_stand_in_the_source_are_not_yet_what_it_says(source: str, claim: str):
    assert verdict(source, claim).support != "supported"


@pytest.mark.parametrize(
    "claim", ["Store it at -5 °C", "“Store it at −5 °C.”", "**Store it at -5 °C**, please", "store it at -5 °C,"]
)
def test_a_sentence_as_it_stands_is_supported_whatever_stands_around_it(claim: str):
    assert verdict("The room is cold. Store it at -5 °C, please.", claim).reasons == ()


def test_what_a_heading_says_is_no_opposite():
    source = passage("You can take up to 30 days once your paid days are used.", heading="Unpaid leave")
    assert judge("You can take up to 30 days of unpaid leave.", [source]).reasons == ()
