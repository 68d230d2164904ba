"""Our postings against rank-bm25's own scoring, and one score by hand."""

import math
import random
from collections import Counter

import pytest

from graphrag_agent.retrieval.stores.bm25 import BM25Index
from graphrag_agent.retrieval.stores.term_weights import AVERAGE_CHUNK_TERMS


def index_of(texts: dict[str, str], **labels: str) -> BM25Index:
    index = BM25Index()
    for key, text in texts.items():
        index.add(key, Counter(text.split()), labels.get(key))
    return index


def test_a_score_by_hand() -> None:
    [(key, score)] = index_of({"x": "pump pump valve", "y": "valve"}).search({"pump": 1}, 5)
    idf = math.log(1 + (2 - 1 + 0.5) / (1 + 0.5))
    weight = 2 * 2.2 / (2 + 1.2 * (0.25 + 0.75 * 3 / AVERAGE_CHUNK_TERMS))
    assert (key, score) == ("x", pytest.approx(idf * weight))


def test_postings_give_the_scores_of_rank_bm25_after_adding_and_removing() -> None:
    chance = random.Random(3)
    words = [f"w{number}" for number in range(30)]
    texts = {f"k{n:03}": " ".join(chance.choices(words, k=chance.randint(1, 40))) for n in range(120)}
    index = index_of(texts)
    for key in list(texts)[::3]:
        index.remove(key)
        del texts[key]
    for _ in range(20):
        query = chance.choices(words, k=4)
        reference = [score for score in index.get_scores(query) if score > 0]
        found = index.search(Counter(query), 1000)
        assert [score for _, score in found] == pytest.approx(sorted(reference, reverse=True))
        assert {key for key, _ in found} == {key for key, text in texts.items() if set(query) & set(text.split())}


def test_removing_most_texts_equals_never_having_added_them() -> None:
    texts = {f"k{number}": f"common w{number}" for number in range(20)}
    index = index_of(texts)
    for number in range(15):
        index.remove(f"k{number}")
    kept = index_of({key: text for key, text in texts.items() if int(key[1:]) >= 15})
    assert index.search({"common": 1, "w17": 2}, 9) == kept.search({"common": 1, "w17": 2}, 9)
    assert len(index) == 5


def test_labels_are_checked_before_the_limit() -> None:
    texts = {f"k{number}": "word" for number in range(5)}
    index = index_of(texts, k4="mine")
    assert [key for key, _ in index.search({"word": 1}, 1, lambda label: label == "mine")] == ["k4"]


def test_equal_scores_are_cut_by_key() -> None:
    index = index_of(dict.fromkeys("dacb", "word"))
    assert [key for key, _ in index.search({"word": 1}, 3)] == ["a", "b", "c"]


@pytest.mark.parametrize("texts", [{}, {"x": ""}, {"x": "word"}], ids=["no text", "empty text", "one text"])
def test_tiny_corpora_neither_fail_nor_score_below_zero(texts: dict[str, str]) -> None:
    found = index_of(texts).search({"word": 1, "other": 1}, 5)
    assert all(score > 0 for _, score in found)
    assert [key for key, _ in found] == [key for key, text in texts.items() if text]
