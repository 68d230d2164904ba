"""Text to words and calls, however it is cut."""

import itertools
import json
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from graphrag_agent.models.text_tools.dialects import AFTER_CALL, READERS, STRAY
from graphrag_agent.models.text_tools.items import Call, Malformed, Text
from graphrag_agent.models.text_tools.parsing import ToolCallParser, parse_text

DATA = Path(__file__).parents[5] / "shared" / "data" / "toolcalls"
NAMES = ("knowledge_search", "web_search")

CALL = '<tool_call name="knowledge_search">{"query": "sick leave"}</tool_call>'
SEARCHED = Call("knowledge_search", '{"query": "sick leave"}')


def rows(name):
    path = DATA / name
    if not path.exists():
        return [pytest.param(None, marks=pytest.mark.skip(reason=f"{name} is not here"))]
    found = [json.loads(line) for line in path.read_text().split("\n") if line]
    return [pytest.param(row, id=row.get("id") or row["name"]) for row in found]


def parse_pieces(pieces, names=NAMES):
    parser = ToolCallParser(names)
    items = [item for piece in pieces for item in parser.feed(piece)] + parser.close()
    merged = []
    for item in items:
        if merged and isinstance(item, Text) and isinstance(merged[-1], Text):
            item = Text(merged.pop().text + item.text)
        merged.append(item)
    return merged


def text_of(items):
    return "".join(item.text for item in items if isinstance(item, Text))


def calls_of(items):
    return [(item.name, json.loads(item.arguments)) for item in items if isinstance(item, Call)]


def hermes(name, arguments):
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments}, ensure_ascii=False)}\n</tool_call>"


def dialect(before, between, after, *, list_form=False):
    def write(calls):
        written = [between(name, json.dumps(arguments, ensure_ascii=False)) for name, arguments in calls]
        return before + (", " if list_form else "").join(written) + after

    return write


DIALECTS = {
    "ours": dialect("", lambda name, args: f'<tool_call name="{name}">{args}</tool_call>\n', ""),
    "hermes": lambda calls: "\n".join(hermes(*call) for call in calls),
    "llama function": dialect("", "<function={}>{}</function>".format, ""),
    "llama python tag": lambda calls: (
        "<|python_tag|>"
        + "; ".join(json.dumps({"name": name, "parameters": args}) for name, args in calls)
        + "<|eom_id|>"
    ),
    "mistral list": dialect("[TOOL_CALLS][", '{{"name": "{}", "arguments": {}}}'.format, "]", list_form=True),
    "mistral named": dialect("", "[TOOL_CALLS]{}[ARGS]{}".format, ""),
    "deepseek": dialect(
        "<｜tool▁calls▁begin｜>",
        "<｜tool▁call▁begin｜>function<｜tool▁sep｜>{}\n```json\n{}\n```<｜tool▁call▁end｜>\n".format,
        "<｜tool▁calls▁end｜><｜end▁of▁sentence｜>",
    ),
    "deepseek 3.1": dialect(
        "<｜tool▁calls▁begin｜>",
        "<｜tool▁call▁begin｜>{}<｜tool▁sep｜>{}<｜tool▁call▁end｜>".format,
        "<｜tool▁calls▁end｜>",
    ),
    "r2r": dialect(
        "<Action>\n<ToolCalls>",
        "\n<ToolCall>\n<Name>{}</Name>\n<Parameters>{}</Parameters>\n</ToolCall>".format,
        "\n</ToolCalls>\n</Action>",
    ),
}

words = st.text(st.characters(blacklist_characters="<>[]{}`~|", blacklist_categories=["Cs"]), max_size=30)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | words,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(words, inner, max_size=2),
    max_leaves=4,
)
arguments = st.dictionaries(words, values, max_size=3)
calls = st.lists(st.tuples(st.sampled_from([*NAMES, "unknown_tool"]), arguments), min_size=1, max_size=3)


@pytest.mark.parametrize("write", DIALECTS.values(), ids=DIALECTS)
def test_a_call_behind_some_words_is_read_in_every_dialect(write):
    items = parse_text("Let me look. " + write([("knowledge_search", {"query": "病假"})]), NAMES)
    assert items == [Text("Let me look."), Call("knowledge_search", '{"query": "病假"}')]


@pytest.mark.parametrize("write", DIALECTS.values(), ids=DIALECTS)
@given(before=words, calls=calls, after=words, size=st.integers(1, 9))
@settings(max_examples=40, deadline=None)
def test_words_and_calls_come_back_as_they_were(write, before, calls, after, size):
    text = before + write(calls) + after
    items = parse_pieces([text[at : at + size] for at in range(0, len(text), size)])
    assert calls_of(items) == calls
    assert "".join(text_of(items).split()) == "".join((before + after).split())
    assert not [item for item in items if isinstance(item, Malformed)]


markers = st.sampled_from([*READERS, *STRAY, *AFTER_CALL, "<think>", "</think>", "<tool_call>", '<tool_call name="'])
shreds = st.sampled_from(
    [
        '{"name": "knowledge_search", "arguments": {"query": "a"}}',
        '{"name": "knowledge_search"',
        '{"query": "',
        '{"a": [1, ',
        '"}',
        "{",
        "}",
        "[",
        "]",
        '"',
        ">",
        "<",
        "\\",
        "`",
        "```",
        "```json\n",
        "~~~\n",
        "\n",
        " ",
        ";",
        "<function=web_search>",
        "<parameter=query>",
        "</parameter>",
        "<tool_call>{",
        "[ARGS]",
        "<｜tool▁sep｜>",
        "<ToolCall>",
        "<Name>web_search</Name>",
        "web_search",
    ]
)
wild = st.lists(markers | shreds | st.text(max_size=5), max_size=14).map("".join)


@given(text=wild, cuts=st.lists(st.integers(0, 200), max_size=6))
@settings(max_examples=300, deadline=None)
@example(text='<tool_call name="a>b">{}</tool_call>', cuts=[])
@example(text='{"name": "web_search", "arguments": {}} and more', cuts=[3, 9])
def test_how_a_text_is_cut_changes_nothing(text, cuts):
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    pieces = [text[start:end] for start, end in itertools.pairwise(places)]
    assert parse_pieces(pieces) == parse_pieces(list(text)) == parse_text(text, NAMES)


@given(text=wild)
@settings(max_examples=200, deadline=None)
def test_no_call_is_invented(text):
    for name, given_arguments in calls_of(parse_text(text, NAMES)):
        assert name in text
        for value in given_arguments.values():
            if isinstance(value, str):
                assert json.dumps(value, ensure_ascii=False)[1:-1] in text or value in text


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


def test_blanks_beside_calls_are_not_shown():
    assert text_of(parse_text(f"\n{CALL}\n\n{CALL}\n", NAMES)) == ""
    assert parse_text(f"One.\n{CALL}\nTwo.", NAMES) == [Text("One."), SEARCHED, Text("\n\nTwo.")]


def test_many_small_pieces_of_a_long_call_are_read_in_no_time():
    text = f'<tool_call name="x">{json.dumps({"text": "word " * 20_000})}</tool_call>'
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
