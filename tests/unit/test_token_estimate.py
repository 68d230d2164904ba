import pytest

from graphrag_agent.token_estimate import estimate_tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("x", 1), ("a" * 35, 10), ("中" * 10, 8), ("年假。", 3), ("ж" * 7, 2), ("ab中", 2), ("한국어", 3)],
)
def test_cjk_counts_four_fifths_and_the_rest_two_sevenths(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens
