"""Text to words and calls, however it is cut."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_agent.models.text_tools.items import Call, Malformed, Text
from graphrag_agent.models.text_tools.parsing import ToolCallParser, parse_text
from tests.unit.models.text_tools.samples import DIALECTS, NAMES, calls_of, parse_pieces, text_of

DATA = Path(__file__).parents[5] / "shared" / "data" / "toolcalls"

CALL = '<tool_call name="knowledge_search">{"query": "sick leave"}</tool_call>'
SEARCHED = Call("knowledge_search", '{"query": "sick leave"}')


def rows(name):
    path = DATA / name
    if not path.exists():
        return [pytest.param(None, marks=pytest.mark.skip(reason=f"{name} is not here"))]
    found = [json.loads(line) for line in path.read_text().split("\n") if line]
    return [pytest.param(row, id=row.get("id") or row["name"]) for row in found]


@pytest.mark.parametrize("write", DIALECTS.values(), ids=DIALECTS)
def test_a_call_behind_some_words_is_read_in_every_dialect(write):
    items = parse_text("Let me look. " + write([("knowledge_search", {"query": "病假"})]), NAMES)
    assert items == [Text("Let me look."), Call("knowledge_search", '{"query": "病假"}')]


@given(text=st.text(st.characters(blacklist_characters="<[{", blacklist_categories=["Cs"]), max_size=80))
@settings(max_examples=100, deadline=None)
def test_a_text_without_markup_passes_unchanged(text):
    assert text_of(parse_text(text, NAMES)) == text


@pytest.mark.parametrize(
    "text",
    [
        "a < b and [1] <toolbox> <tool_calls> <tool_call_id>, see [TOOLS](x)",
        '{"name": "Ada", "born": 1815}',
        '{"name": "knowledge_search"}',
        '{"name": "unknown_tool", "arguments": {"query": "a"}}',
        'for { print("hello") }',
        "[special delivery]",
        '{"name": "web_search", "arguments": {"query": "a"}} is how a call looks',
        f"Write it so:\n```xml\n{CALL}\n```\nDone.",
        f"Write it so:\n- ~~~\n  {CALL}\n  ~~~\n",
        f"Write `{CALL}` or ``{CALL} ` ``.",
        f"```\n{CALL}\n``` no end\n{CALL}",
        f"<think>I might write {CALL}.</think>No need.",
        "x <tool_",
        "two  blanks  \n\n",
    ],
)
def test_what_is_no_call_stays_as_it_is(text):
    parsed = parse_text(text, NAMES)
    if text == "x <tool_":
        assert parsed == [Text("x"), Malformed("<tool_", "the call is cut off")]
    else:
        assert parsed == [Text(text)]


@pytest.mark.parametrize(
    ("text", "name", "arguments"),
    [
        ('<tool_call name="x"></tool_call>', "x", {}),
        ('<tool_call name="x"/>', "x", {}),
        ("<tool_call id='1' name='x'>\n{}\n</tool_call>", "x", {}),
        ("<tool_call name=x>{}</tool_call>", "x", {}),
        ('<tool_call name="x" {"q": 1}</tool_call>', "x", {"q": 1}),
        ('<tool_call name="x">{"name": "x", "arguments": {"q": 1}}</tool_call>', "x", {"q": 1}),
        ('<tool_call name="x">```json\n{"q": 1}\n```\n</tool_call>', "x", {"q": 1}),
        ('<tool_call name="x">{"q": "</tool_call>"}</tool_call>', "x", {"q": "</tool_call>"}),
        ('<tool_call name="x">{"q": "a\nb"}</tool_call>', "x", {"q": "a\nb"}),
        ('<tool_call name="x">{"q": 1}', "x", {"q": 1}),
        ('<tool_call name="x">{"q": 1}}</tool_call>', "x", {"q": 1}),
        ('<tool_call name="x">{"q": [1</tool_call>', "x", {"q": [1]}),
        ('<tool_call name="x">{"q": "a}</tool_call>', "x", {"q": "a"}),
        ('<tool_call name="x">{"q": "a</tool_call>', "x", {"q": "a"}),
        ('<tool_call>{"name": "x", "arguments": {"q": 1}', "x", {"q": 1}),
        ('<tool_call>{"name": "x", "arguments": "{\\"q\\": 1}"}</tool_call>', "x", {"q": 1}),
        ('<tool_call>{"name": "x", "arguments": null}</tool_call>', "x", {}),
        ('<tool_call>{"type": "function", "function": {"name": "x", "arguments": "{}"}}</tool_call>', "x", {}),
        ("<tool_call>\n<function=x>\n<parameter=q>\n[1]\n</parameter>\n</function>\n</tool_call>", "x", {"q": [1]}),
        ('[TOOL_CALLS] {"name": "x", "arguments": {}}', "x", {}),
        ('[TOOL_CALLS]x[CALL_ID]a1[ARGS]{"q": 1}', "x", {"q": 1}),
        ('{"name": "web_search", "parameters": {"query": "a"}}', "web_search", {"query": "a"}),
        ('[{"name": "web_search", "arguments": {"query": "a"}}]]', "web_search", {"query": "a"}),
        ('[{"name": "web_search", "arguments": {"query": "a"}', "web_search", {"query": "a"}),
        ('{"function": "web_search", "arguments": {"query": "a"}}', "web_search", {"query": "a"}),
    ],
)
def test_small_slips_are_forgiven(text, name, arguments):
    items = parse_text(text, NAMES)
    assert calls_of(items) == [(name, arguments)]
    assert len(items) == 1


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('<tool_call name="x">{"q": "a', "the call is cut off"),
        ('<tool_call name="x">{"q": "a"', "the call is cut off"),
        ('<tool_call name="x">{"q": "</tool_call>"', "the call is cut off"),
        ('<tool_call name="x">', "the call is cut off"),
        ('<tool_call name="x', "the call is cut off"),
        ('<tool_call>{"name": "x", "arguments": {"q": 1', "the call is cut off"),
        ('<tool_call>{"name": "x"', "the call is cut off"),
        ('<tool_call name="x">{"q": 1,}</tool_call>', "the arguments are not valid JSON"),
        ('<tool_call name="x">{"q": 1e999}</tool_call>', "the arguments are not valid JSON"),
        ('<tool_call name="x">query: a</tool_call>', "the arguments are not valid JSON"),
        ('<tool_call name="">{}</tool_call>', "the name of the tool is missing"),
        ('<tool_call>{"arguments": {}}</tool_call>', "the name of the tool is missing"),
        ("<tool_call></tool_call>", "the name of the tool is missing"),
        ('<tool_call>{"name": "x", "arguments": [1]}</tool_call>', "the arguments must be a JSON object"),
        ("<function=x>\n<parameter=q>\na", "the call is cut off"),
        ("<function=x>\n<parameter=q>\na</function>", "a parameter is not closed"),
        ("[TOOL_CALLS]", "the call is cut off"),
        ("[TOOL_CALLS]x[ARGS]{", "the call is cut off"),
        ("<|python_tag|>brave_search.call(query='a')<|eom_id|>", "the arguments are not valid JSON"),
        ("<｜tool▁call▁begin｜>function<｜tool▁sep｜>x", "the call is cut off"),
        ("<Action><ToolCalls><ToolCall>", "the call is cut off"),
        ('{"name": "web_search", "arguments": {', "the call is cut off"),
        ('{"name": "web_search", "arguments": {"query": "a" "b"}}', "the arguments are not valid JSON"),
    ],
)
def test_a_broken_call_is_neither_a_call_nor_text(text, reason):
    before = "" if text[0] == "{" else "Wait."
    items = parse_text(before + text, NAMES)
    broken = items[-1]
    assert (broken.reason, broken.raw) == (reason, text.removesuffix("</tool_call>") if "{" in text else text)
    assert items[:-1] == ([Text(before)] if before else [])


def test_a_broken_call_takes_its_neighbours_not_with_it():
    text = '<tool_call name="x">{"q": 1,}</tool_call>' + CALL + '[TOOL_CALLS][{"name": "y", "arguments": {}}, {"nam'
    items = parse_text(text, NAMES)
    assert [type(item).__name__ for item in items] == ["Malformed", "Call", "Call", "Malformed"]
    assert items[1] == SEARCHED


def test_a_tag_that_is_only_mentioned_costs_the_reader_nothing_but_the_tag():
    rest = " is a tag that some models use. " + "They write it around a call. " * 20
    assert parse_text("Well: <tool_call>" + rest, NAMES) == [Text("Well: " + rest)]


def test_nothing_that_may_be_markup_is_shown_before_it_is_decided():
    parser = ToolCallParser(NAMES)
    shown = [
        text_of(parser.feed(piece))
        for piece in ["Wait. <to", "ol_c", "all name", '="x"> {', "}", "</too", "l_call>", " Ok", "<"]
    ]
    assert shown == ["Wait.", "", "", "", "", "", "", "  Ok", ""]
    assert parser.close() == [Text("<")]


def test_a_call_is_given_as_soon_as_its_arguments_are_complete():
    parser = ToolCallParser(NAMES)
    assert parser.feed(CALL[:-13]) == []
    assert parser.feed("}") == [SEARCHED]
    assert parser.feed("</tool_call>") == parser.close() == []


def test_what_follows_a_call_is_shown_to_the_last_character():
    for end in ("<", "</", "}", "a}", "</b>", "[1]"):
        shown = text_of(parse_text(CALL + end, NAMES))
        assert shown == {"</": "", "}": ""}.get(end, end)


def test_results_that_a_model_makes_up_are_not_shown():
    made_up = '<tool_result name="knowledge_search" id="1">\n99 days <b>\n</tool_result>'
    assert parse_text(f"{CALL}\n{made_up}\nSo 99.", NAMES) == [SEARCHED, Text("So 99.")]
    assert parse_text(f"{CALL}<tool_response>99", NAMES) == [SEARCHED, Text("99")]


def test_blanks_beside_calls_are_not_shown():
    assert text_of(parse_text(f"\n{CALL}\n\n{CALL}\n", NAMES)) == ""
    assert parse_text(f"One.\n{CALL}\nTwo.", NAMES) == [Text("One."), SEARCHED, Text("\n\nTwo.")]


def test_many_small_pieces_of_a_long_call_are_read_in_no_time():
    text = f'<tool_call name="x">{json.dumps({"text": "f({x}) > 1; " * 10_000})}</tool_call>'
    [call] = parse_pieces([text[at : at + 5] for at in range(0, len(text), 5)])
    assert len(call.arguments) > 100_000


@pytest.mark.parametrize("row", rows("text_tool_calls/ollama_chunked.jsonl"))
def test_ollama_cases_are_read_as_ollama_reads_them(row):
    names = ("get_conditions", "get_temperature", "say_hello", "say_hello_world", "get_address", "add")
    items, expected = parse_pieces(row["chunks"], names), row["expected"]
    assert items == parse_text("".join(row["chunks"]), names)
    if "tool_calls" in expected:
        as_text = {
            "x": "3.14",
            "y": "42",
            "enabled": "true",
        }  # no schema is known here: the tool's own model reads them
        wanted = [
            (call["name"], call["arguments"] | (as_text if call["name"] == "calculate" else {}))
            for call in expected["tool_calls"]
        ]
        assert calls_of(items) == wanted
    else:
        broken = [item for item in items if isinstance(item, Malformed)]
        assert [item.raw.removeprefix("<tool_call>").removesuffix("</tool_call>") for item in broken] == (
            expected["raw_tool_calls"] or ([""] if row["chunks"][-1].endswith("<tool_call>") else [])
        )
    if "content" in expected and row["id"] not in DIFFERENT:
        assert text_of(items).split() == expected["content"].split()


DIFFERENT = {
    "ollama-tools-020",  # a cut list that names no offered tool: dropped there, text here
    "ollama-qwenstream-056",  # the blank between two words is kept here
    "ollama-qwenstream-058",  # three characters of a tag at the end are text here
}


@pytest.mark.parametrize("row", rows("r2r_xml/examples.jsonl"))
def test_r2r_examples_are_read(row):
    items = parse_text(row["text"])
    for item, expected in zip(items, row["expected"]["tool_calls"], strict=True):
        if expected["parameters"] is None:
            assert (type(item), item.reason) == (Malformed, "the arguments are not valid JSON")
        else:
            assert (item.name, json.loads(item.arguments)) == (expected["name"], expected["parameters"])
