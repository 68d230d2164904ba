"""Tool calls as servers really stream them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_agent.models.openai_compatible.tool_calls import (
    Call,
    CallAssembler,
    has_broken_calls,
    is_whole,
    read_calls,
)

Q1, Q2 = '{"query": "a"}', '{"query": "b"}'


def piece(index: Any = None, *, id: str | None = None, name: str | None = None, args: Any = None) -> dict[str, Any]:
    return {"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": args}}


DELTAS: dict[str, tuple[list[dict[str, Any]], list[tuple[str | None, str, str]]]] = {
    "as OpenAI does": (
        [piece(0, id="a", name="f", args=""), piece(0, args=Q1[:5]), piece(0, args=Q1[5:]), piece(1, id="b", name="g")],
        [("a", "f", Q1), ("b", "g", "")],
    ),
    "without index": (
        [piece(id="a", name="f", args=Q1[:5]), piece(args=Q1[5:]), piece(id="b", name="f", args=Q2)],
        [("a", "f", Q1), ("b", "f", Q2)],
    ),
    "without index and id": (
        [piece(name="f", args=Q1[:5]), piece(args=Q1[5:]), piece(name="f", args=Q2), piece(name="g", args=Q1)],
        [(None, "f", Q1), (None, "f", Q2), (None, "g", Q1)],
    ),
    "without index, interleaved by id": (
        [piece(id="a", name="f"), piece(id="b", name="f"), piece(id="a", args=Q1), piece(id="b", args=Q2)],
        [("a", "f", Q1), ("b", "f", Q2)],
    ),
    "every call at index 0": (
        [piece(0, id="a", name="f", args=Q1), piece(0, id="b", name="f", args=Q2), piece(0, id="c", name="g")],
        [("a", "f", Q1), ("b", "f", Q2), ("c", "g", "")],
    ),
    "every call at index 0, in pieces": (
        [piece(0, id="a", name="f"), piece(0, args=Q1), piece(0, id="b", name="f"), piece(0, args=Q2)],
        [("a", "f", Q1), ("b", "f", Q2)],
    ),
    "index from one, not zero": (
        [piece(1, id="a", name="f", args=Q1), piece(2, id="b", name="f", args=Q2)],
        [("a", "f", Q1), ("b", "f", Q2)],
    ),
    "index as text": ([piece("0", id="a", name="f"), piece("0", args=Q1)], [("a", "f", Q1)]),
    "name in each delta": (
        [piece(0, id="a", name="f", args=Q1[:5]), piece(0, name="f", args=Q1[5:]), piece(0, name="f", args="")],
        [("a", "f", Q1)],
    ),
    "name and id in each delta": (
        [piece(0, id="a", name="f", args=Q1[:5]), piece(0, id="a", name="f", args=Q1[5:])],
        [("a", "f", Q1)],
    ),
    "another id in each delta": (
        [piece(0, id="a", name="f", args=Q1[:5]), piece(0, id="b", name="f", args=Q1[5:])],
        [("a", "f", Q1)],
    ),
    "name in pieces": ([piece(0, id="a", name="know"), piece(0, name="ledge", args=Q1)], [("a", "knowledge", Q1)]),
    "name after the first arguments": ([piece(0, args=Q1[:5]), piece(0, name="f", args=Q1[5:])], [(None, "f", Q1)]),
    "id after the name": ([piece(0, name="f"), piece(0, id="a", args=Q1)], [("a", "f", Q1)]),
    "arguments as an object": ([piece(0, id="a", name="f", args={"query": "病假"})], [("a", "f", '{"query": "病假"}')]),
    "arguments as a list": ([piece(0, id="a", name="f", args=["x"])], [("a", "f", '["x"]')]),
    "null arguments": ([piece(0, id="a", name="f", args=None)], [("a", "f", "")]),
    "without the inner object": ([{"index": 0, "id": "a", "name": "f", "arguments": Q1}], [("a", "f", Q1)]),
    "id as a number": ([{"index": 0, "id": 7, "function": {"name": "f", "arguments": Q1}}], [("7", "f", Q1)]),
    "nothing at all": ([{}], [(None, "", "")]),
}


@pytest.mark.parametrize(("deltas", "expected"), DELTAS.values(), ids=DELTAS)
def test_a_delta_goes_to_its_call(deltas, expected):
    assembler = CallAssembler()
    pieces = [assembler.add(delta) for delta in deltas]
    assert [(call.id, call.name, call.arguments) for call in assembler.calls] == expected
    assert len({call.index for call in assembler.calls}) == len(expected)
    for call in assembler.calls:  # merged by index, as langchain-core does, the pieces give the same
        own = [found for found in pieces if found.call == call.index]
        assert ("".join(p.id or "" for p in own) or None, "".join(p.name or "" for p in own)) == (call.id, call.name)
        assert "".join(p.arguments for p in own) == call.arguments


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("", {}),
        ("  ", {}),
        ("{}", {}),
        (Q1, {"query": "a"}),
        (' {"a": 1}\n', {"a": 1}),
        ('{"a": "1\n2"}', {"a": "1\n2"}),
    ],
)
def test_an_object_is_a_call(text, arguments):
    calls, invalid = read_calls([Call(0, "a", "f", [text])])
    assert ([call["args"] for call in calls], invalid) == ([arguments], [])


@pytest.mark.parametrize(
    "text",
    [
        '{"query": "a',
        "{",
        '{"query": ',
        '{"query": "a"',
        Q1 + "}",
        Q1 + " and more",
        "null",
        "[]",
        "7",
        '"x"',
        "a",
        "[" * 9999,
    ],
    ids=lambda text: text[:20],
)
def test_anything_else_is_an_invalid_call_as_it_came(text):
    calls, invalid = read_calls([Call(0, "a", "f", [text])])
    assert (calls, [(call["id"], call["name"], call["args"]) for call in invalid]) == ([], [("a", "f", text)])
    assert "the arguments are n" in invalid[0]["error"]
    assert has_broken_calls([Call(0, "a", "f", [text])])
    assert not is_whole(text)


@given(st.dictionaries(st.text(max_size=5), st.text(max_size=20), min_size=1, max_size=3), st.data())
def test_no_cut_of_an_object_is_a_call(value, data):
    import json

    text = json.dumps(value, ensure_ascii=False)
    cut = data.draw(st.integers(1, len(text) - 1))
    assert read_calls([Call(0, "a", "f", [text])])[0][0]["args"] == value
    assert read_calls([Call(0, "a", "f", [text[:cut]])])[0] == []
