"""Tool results within the tokens of a turn."""

from hypothesis import given
from hypothesis import strategies as st

from graphrag_agent.citations import Evidence
from graphrag_agent.graph.policy.pairing import tool_message
from graphrag_agent.graph.policy.result_budget import fit_results, tokens_shown
from graphrag_agent.tools.evidence_message import read_evidence, render_evidence

CALL = {"id": "1", "name": "search"}


def found(*texts: str):
    hits = [
        Evidence(f"a2b{n:02}", f"c{n}", "d", "T", "t.md", None, "", 0.5, 0, 1, text) for n, text in enumerate(texts)
    ]
    return tool_message(CALL, *render_evidence(hits))


def test_what_fits_is_left_alone():
    results = [found("short"), tool_message(CALL, "plain")]
    assert fit_results(results, shown=0, limit=1000) == results


def test_passages_are_left_out_whole_and_the_rest_still_points_into_the_text():
    (fitted,) = fit_results([found(*["word " * 50] * 4)], shown=0, limit=400)
    evidence = read_evidence([fitted])
    assert [item.text for item in evidence.values()] == ["word " * 50] * len(evidence)
    assert 0 < len(evidence) < 4
    assert f"{4 - len(evidence)} of 4 passages were left out" in fitted.text


def test_earlier_results_count():
    (fitted,) = fit_results([found("word " * 50)], shown=390, limit=400)
    assert read_evidence([fitted]) == {}


def test_chinese_counts_as_many_tokens():
    english, chinese = (
        fit_results([tool_message(CALL, t * 4000)], shown=0, limit=1000)[0].text for t in ("ab", "中文")
    )
    assert len(english) > 2 * len(chinese)


@given(st.lists(st.text(max_size=400), min_size=1, max_size=5), st.integers(0, 500), st.integers(100, 600))
def test_results_never_exceed_the_limit_by_more_than_their_notes(texts: list[str], shown: int, limit: int):
    fitted = fit_results([tool_message(CALL, text) for text in texts], shown=shown, limit=limit)
    assert len(fitted) == len(texts)
    note_and_start = 300 / 0.8  # 200 characters are kept of each, and a note
    assert tokens_shown(fitted) <= max(0, limit - shown) + len(texts) * note_and_start
