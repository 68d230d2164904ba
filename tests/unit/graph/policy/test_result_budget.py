"""Tool results within the tokens of a turn."""

from hypothesis import given
from hypothesis import strategies as st

from graphrag_agent.citations import Evidence
from graphrag_agent.graph.policy.pairing import tool_message
from graphrag_agent.graph.policy.result_budget import fit_results, tokens_shown
from graphrag_agent.tools.evidence_message import READS_ON, read_evidence, render_evidence

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


DOCUMENT = "The desk opens at nine. Bring a form. " * 12 + "Everyone pays. Except for guests. Thank you."


def passage(start: int, end: int, name: str = "a2b34") -> Evidence:
    return Evidence(name, f"c-{name}", "d", "T", "t.md", None, "", 0.5, start, end, DOCUMENT[start:end])


def test_the_last_passage_that_fits_is_kept_in_part_by_whole_sentences_with_right_offsets():
    whole = tool_message(CALL, *render_evidence([passage(0, len(DOCUMENT))], note="One leg failed."))
    (fitted,) = fit_results([whole], shown=0, limit=220)
    (kept,) = read_evidence([fitted]).values()
    assert kept.text == DOCUMENT[kept.start : kept.end]
    assert 0 < len(kept.text) < len(DOCUMENT)
    assert kept.text.endswith(("nine.", "form."))
    sentences = DOCUMENT[kept.end :].count(".")
    assert f'note="… {sentences} sentences left out; read the document for more"' in fitted.text
    assert fitted.text.endswith("Note: One leg failed.")
    assert kept.left_out == sentences
    assert "passages were left out" not in fitted.text


def test_a_reading_that_is_cut_tells_where_to_read_on_from_what_is_shown():
    pieces = [passage(0, 228, "a2b34"), passage(228, 456, "a2b35"), passage(456, len(DOCUMENT), "a2b36")]
    content, artifact = render_evidence(pieces, note=f"Characters 0 to {len(DOCUMENT)}: the document ends here.")
    starts = set()
    for limit in range(120, 600, 20):
        (fitted,) = fit_results([tool_message(CALL, content, {**artifact, READS_ON: True})], shown=0, limit=limit)
        kept = list(read_evidence([fitted]).values())
        if fitted.text != content:
            assert "document ends here" not in fitted.text
            assert f"begins at start={kept[-1].end if kept else 0}." in fitted.text
            starts.add(len(kept))
    assert starts >= {1, 2}


def test_an_exception_is_never_left_behind():
    for limit in range(100, 420, 2):
        (fitted,) = fit_results(
            [tool_message(CALL, *render_evidence([passage(0, len(DOCUMENT))]))], shown=0, limit=limit
        )
        shown = [item.text for item in read_evidence([fitted]).values()]
        assert all(("Everyone pays." in text) == ("Except for guests." in text) for text in shown)


def test_what_was_over_the_budget_is_in_the_trace_and_the_rest_of_it_stays():
    content, artifact = render_evidence([passage(0, 100), passage(0, len(DOCUMENT), "b3c45"), passage(0, 9, "c4d56")])
    traced = tool_message(CALL, content, {**artifact, "trace": {"fusion": "dbsf"}})
    (fitted,) = fit_results([traced], shown=0, limit=260)
    assert fitted.artifact["trace"] == {"fusion": "dbsf", "over_budget": {"left_out": 1, "shortened": 1}}
    assert "1 of 3 passages were left out" in fitted.text


def test_other_text_is_cut_after_a_sentence_where_it_has_some():
    (fitted,) = fit_results([tool_message(CALL, DOCUMENT * 4)], shown=0, limit=200)
    kept = fitted.text.partition("\n[")[0]
    assert kept.endswith(("nine.", "form.", "guests.", "you."))
    assert DOCUMENT.startswith(kept)


@given(st.lists(st.integers(40, 600), min_size=1, max_size=4), st.integers(100, 900))
def test_kept_passages_are_exact_beginnings_of_the_found_ones(lengths: list[int], limit: int):
    found = [passage(0, min(length, len(DOCUMENT)), f"a2b3{n}") for n, length in enumerate(lengths, start=2)]
    (fitted,) = fit_results([tool_message(CALL, *render_evidence(found))], shown=0, limit=limit)
    kept = list(read_evidence([fitted]).values())
    for item, before in zip(kept, found, strict=False):
        assert (item.id, item.start) == (before.id, before.start)
        assert item.text == DOCUMENT[item.start : item.end]
        assert before.text.startswith(item.text)
    assert all(item.left_out == 0 for item in kept[:-1])
    assert tokens_shown([fitted]) <= max(limit, 200) * 0.5 + 60


def test_a_short_result_stays_whole_when_nothing_is_left():
    results = [tool_message(CALL, text) for text in ("", "42", "x" * 200)]
    assert fit_results(results, shown=1000, limit=1000) == results


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


def test_a_result_that_is_cut_again_still_tells_its_true_length():
    result = tool_message({"id": "1", "name": "dump"}, "some words of data; " * 500)
    (once,) = fit_results([result], shown=0, limit=1_000)
    assert fit_results([once], shown=0, limit=1_000) == [once]
    (twice,) = fit_results([once], shown=900, limit=1_000)
    assert len(twice.text) < len(once.text)
    assert twice.text.count("were left out") == 1
    assert "of 10000 characters were left out" in twice.text
