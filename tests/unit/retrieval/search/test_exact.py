"""A query that is one identifier."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_agent.documents import Chunk
from graphrag_agent.retrieval.search.exact import find_identifier, lift_exact


def chunks(*texts: str) -> dict[str, Chunk]:
    return {
        name: Chunk(name, "d", "t", "c", (), "s", "md", "", "", None, 0, text, 0, len(text))
        for name, text in zip("abcdefgh", texts, strict=False)
    }


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("SKU-99/A", "sku-99/a"),
        (" v2.1.3? ", "v2.1.3"),
        ("“E-1042”", "e-1042"),
        ("E\u20111042", "e-1042"),
        ("Ｅ-１０４２", "e-1042"),
        ("E-10\u200b42", "e-1042"),
        ("ERR_CONN_RESET", "err_conn_reset"),
        ("ann@example.org", "ann@example.org"),
        ("2026-11-30", "2026-11-30"),
        ("C++", "c++"),
        ("pump", None),
        ("well-known", None),
        ("E-1042 pump", None),
        ("第5条", None),
        ("", None),
        ("?!", None),
        ("1" * 65, None),
    ],
)
def test_what_an_identifier_is(query: str, name: str | None) -> None:
    assert find_identifier(query) == name


def test_holders_come_first_and_those_of_a_longer_name_after_them() -> None:
    texts = "nothing", "code E-1042-B", "E-10421 and E-104", "see (e-1042).", "E-1042: leak", "re-1042"
    ranking = [(name, 1.0 - place / 10) for place, name in enumerate("abcdef")]
    lifted, holders = lift_exact(ranking, chunks(*texts), "e-1042")
    assert [name for name, _ in lifted] == ["d", "e", "b", "a", "c", "f"]
    assert holders == 3
    assert lifted[0] == ("d", pytest.approx(0.7 + 2.0))


@pytest.mark.parametrize(
    ("version", "held"), [("v2.1.3", True), ("v2.1.30", False), ("v2.1.3.1", True), ("xv2.1.3", False)]
)
def test_a_longer_number_is_another_version(version: str, held: bool) -> None:
    assert lift_exact([("a", 1.0)], chunks(f"since {version}"), "v2.1.3")[1] == held


@given(st.lists(st.floats(0.01, 9), min_size=1, max_size=8), st.data())
def test_order_among_equals_stays(scores: list[float], data: st.DataObject) -> None:
    texts = data.draw(
        st.lists(st.sampled_from(["x E-1 y", "E-1-2", "none"]), min_size=len(scores), max_size=len(scores))
    )
    known = chunks(*texts)
    ranking = sorted(zip(known, scores, strict=True), key=lambda item: -item[1])
    lifted, _ = lift_exact(ranking, known, "e-1")
    held = {"x E-1 y": 2, "E-1-2": 1, "none": 0}
    expected = sorted([name for name, _ in ranking], key=lambda name: -held[known[name].text])
    assert [name for name, _ in lifted] == expected
    assert [score for _, score in lifted] == sorted((score for _, score in lifted), reverse=True)
