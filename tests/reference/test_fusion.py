"""Fusion against hand-worked numbers and against qdrant-client's own."""

import copy

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from qdrant_client.hybrid.fusion import distribution_based_score_fusion, reciprocal_rank_fusion
from qdrant_client.models import ScoredPoint

from graphrag_agent.retrieval.search.fusion import fuse_dbsf, fuse_min_max, fuse_rrf

BM25 = [("a", 3.0), ("b", 2.0), ("c", 1.0)]
DENSE = [("b", 0.9), ("d", 0.5)]


def test_dbsf_by_hand() -> None:
    # bm25: mean 2, sample deviation 1 -> (score + 1) / 6; dense: mean .7, deviation .2828 -> .5 ± 1 / (6 * sqrt 2) * 1
    expected = {"b": 3 / 6 + 0.617851, "a": 4 / 6, "d": 0.382149, "c": 2 / 6}
    assert dict(fuse_dbsf({"bm25": BM25, "dense": DENSE})) == pytest.approx(expected, abs=1e-6)
    assert [name for name, _ in fuse_dbsf({"bm25": BM25, "dense": DENSE})] == ["b", "a", "d", "c"]


def test_rrf_by_hand() -> None:
    expected = {"b": 1 / 62 + 1 / 61, "a": 1 / 61, "d": 1 / 62, "c": 1 / 63}
    assert dict(fuse_rrf({"bm25": BM25, "dense": DENSE})) == pytest.approx(expected)


def test_weighted_min_max_by_hand() -> None:
    fused = fuse_min_max({"bm25": BM25, "dense": DENSE}, weights={"bm25": 0.7, "dense": 0.3})
    assert fused == [("a", 0.7), ("b", pytest.approx(0.65)), ("c", 0.0), ("d", 0.0)]


@pytest.mark.parametrize("fuse", [fuse_dbsf, fuse_min_max])
def test_hits_that_a_leg_cannot_tell_apart_get_half_a_vote(fuse) -> None:
    assert fuse({"one": [("a", 7.0)], "level": [("c", 2.0), ("b", 2.0)]}) == [("a", 0.5), ("b", 0.5), ("c", 0.5)]


@pytest.mark.parametrize("fuse", [fuse_dbsf, fuse_rrf, fuse_min_max])
def test_zero_scores_empty_legs_and_repeats_count_for_nothing(fuse) -> None:
    noisy = {"bm25": [*BM25, ("a", 1.5), ("z", 0.0), ("y", -1.0)], "dense": [], "graph": [("z", 0.0)]}
    assert fuse(noisy) == fuse({"bm25": BM25})
    assert fuse({}) == []


LEG = st.dictionaries(st.sampled_from("abcdefgh"), st.floats(0.01, 50), max_size=8).map(
    lambda scores: sorted(scores.items(), key=lambda item: (-item[1], item[0]))
)


@settings(max_examples=80)
@given(st.lists(LEG, max_size=3))
def test_dbsf_and_rrf_equal_qdrants(legs: list[list[tuple[str, float]]]) -> None:
    # where all scores are level Qdrant divides by what rounding left of their spread; ours are told apart above
    assume(all(len(leg) < 2 or leg[0][1] - leg[-1][1] > 1e-6 for leg in legs))
    named = {f"leg{number}": leg for number, leg in enumerate(legs)}
    before = copy.deepcopy(named)

    def points() -> list[list[ScoredPoint]]:
        return [[ScoredPoint(id=ord(name), version=0, score=score) for name, score in leg] for leg in legs]

    theirs = {chr(point.id): point.score for point in distribution_based_score_fusion(points(), limit=100)}
    assert dict(fuse_dbsf(named)) == pytest.approx(theirs, abs=1e-6)
    # qdrant counts ranks from 0 and adds k - 1
    theirs = {chr(p.id): p.score for p in reciprocal_rank_fusion(points(), limit=100, ranking_constant_k=61)}
    assert dict(fuse_rrf(named, k=60)) == pytest.approx(theirs)
    assert named == before
