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
