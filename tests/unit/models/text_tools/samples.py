"""Calls in every dialect, and shreds of them."""

import json

from hypothesis import strategies as st

from graphrag_agent.models.text_tools.dialects import AFTER_CALL, READERS, STRAY
from graphrag_agent.models.text_tools.items import Call, Text
from graphrag_agent.models.text_tools.parsing import ToolCallParser

NAMES = ("knowledge_search", "web_search")


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
