"""JSON is repaired where nothing is guessed."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_agent.models.text_tools.items import Call
from graphrag_agent.models.text_tools.json_bodies import JsonScan, parse_call, parse_object

DATA = Path(__file__).parents[5] / "shared" / "data" / "toolcalls" / "malformed_json"


def rows(name):
    path = DATA / name
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().split("\n") if line]


def without_blanks(value):
    """That library also trims keys and texts."""
    return "".join(json.dumps(value, ensure_ascii=False).replace("\\n", "").split())


@pytest.mark.parametrize("is_ended", [True, False])
def test_a_broken_object_is_read_as_meant_or_not_at_all(is_ended):
    pairs = rows("json_repair_pairs.jsonl") or pytest.skip("malformed_json is not here")
    wrong = [
        (pair["input"], got, pair["expected_object"])
        for pair in pairs
        if (got := parse_object(pair["input"], is_ended=is_ended)) is not None
        and without_blanks(got) != without_blanks(pair.get("expected_object", got))
    ]
    assert wrong == []


def test_texts_that_json_refuses_make_no_call():
    suite = rows("JSONTestSuite.jsonl") or pytest.skip("malformed_json is not here")
    texts = {case["name"]: case["text"] for case in suite if case["expect"] == "reject" and "text" in case}
    made = {
        name: parse_call('{"name": "x", "arguments": ' + text + "}", is_ended=True, raw=text)
        for name, text in texts.items()
    }
    assert [name for name, call in made.items() if isinstance(call, Call)] == [
        "n_structure_open_object.json",  # `{` and `{"asd":"asd"`: closed, for the model said that the call is over
        "n_structure_unclosed_object.json",
    ]


def test_texts_that_json_accepts_keep_their_meaning():
    suite = rows("JSONTestSuite.jsonl") or pytest.skip("malformed_json is not here")
    for case in suite:
        if case["expect"] == "accept" and "text" in case:
            made = parse_call('{"name": "x", "arguments": {"value": ' + case["text"] + "}}", is_ended=True, raw="")
            assert json.loads(made.arguments)["value"] == json.loads(case["text"])


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, '{"a": ' + "9" * 5000 + "}", '{"a": NaN}'])
def test_hostile_json_is_refused(text):
    assert parse_object(text, is_ended=True) is None


json_values = st.recursive(
    st.none() | st.integers(0, 9) | st.text(st.sampled_from('a\\"{}[]<\n'), max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
)


@given(
    value=st.dictionaries(st.text(st.sampled_from('a"\\{'), max_size=3), json_values, max_size=3),
    size=st.integers(1, 4),
)
@settings(max_examples=100, deadline=None)
def test_a_scan_in_pieces_sees_the_end_where_json_ends(value, size):
    scan, text = JsonScan(), json.dumps(value)
    seen = []
    for at in range(0, len(text), size):
        scan.feed(text[at : at + size])
        seen.append(scan.is_open)
    assert seen == [True] * (len(seen) - 1) + [False]
