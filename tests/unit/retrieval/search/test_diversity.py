"""MMR by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_agent.retrieval.search.diversity import DIVERSIFIED, diversify
from graphrag_agent.retrieval.search.evidence import shingle_similarity

RANKING = [("a", 4.0), ("b", 3.0), ("c", 2.0), ("d", 0.0)]


def same_pair(one: str, other: str) -> float:
    return 1.0 if {one, other} == {"a", "b"} else 0.0


def test_a_copy_of_a_better_one_gives_way() -> None:
    # relevance 1, .75, .5, 0; after a: b .7*.75 - .3 = .225, c .35, d 0; then b before d
    assert [name for name, _ in diversify(RANKING, same_pair)] == ["a", "c", "b", "d"]


def test_the_share_decides() -> None:
    assert diversify(RANKING, same_pair, relevance_share=1.0) == RANKING
    # .5*.75 - .5 = -.125 for b, .25 for c, 0 for d
    assert [name for name, _ in diversify(RANKING, same_pair, relevance_share=0.5)] == ["a", "c", "d", "b"]


def test_level_scores_keep_their_order_and_empty_stays_empty() -> None:
    level = [("a", 1.0), ("b", 1.0), ("c", 1.0)]
    assert diversify(level, lambda *_: 0.0) == level
    assert diversify([], same_pair) == []


@given(st.lists(st.floats(0.01, 9), max_size=30), st.randoms(use_true_random=False))
def test_nothing_is_lost_and_the_tail_stays(scores: list[float], chance) -> None:
    ranking = [(str(place), score) for place, score in enumerate(sorted(scores, reverse=True))]
    found = diversify(ranking, lambda *_: chance.random())
    assert sorted(found) == sorted(ranking)
    assert found[DIVERSIFIED:] == ranking[DIVERSIFIED:]
    assert found[:1] == ranking[:1]


def test_shingles_by_hand() -> None:
    # the pump hums, pump hums loudly | the pump hums, pump hums softly: 1 of 3
    assert shingle_similarity("The pump hums loudly", "the pump hums softly") == pytest.approx(1 / 3)
