"""Marks in a text that comes in pieces: the same are found however it is cut, and what is no mark stays text."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_agent.citations import Marker, MarkerStream, parse_markers
from graphrag_agent.citations.parsing import MAX_HELD, Piece, merge_pieces


def ids(text: str) -> list[tuple[str, ...]]:
    return [piece.ids for piece in parse_markers(text) if isinstance(piece, Marker)]


def raw(pieces: list[Piece]) -> str:
    return "".join(piece.raw if isinstance(piece, Marker) else piece for piece in pieces)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Ten [k3f2a].", [("k3f2a",)]),
        ("Ten [k3f2a, m7xw2].", [("k3f2a", "m7xw2")]),
        ("十天【k3f2a】。", [("k3f2a",)]),
        ("十天［k3f2a，m7xw2］。", [("k3f2a", "m7xw2")]),
        ("十天[k3f2a、m7xw2；p4q5r]", [("k3f2a", "m7xw2", "p4q5r")]),
        ("Ten `[k3f2a]`.", [("k3f2a",)]),
        ("Ten ``[k3f2a, m7xw2]``.", [("k3f2a", "m7xw2")]),
        ("Ten [`k3f2a`].", [("k3f2a",)]),
        ("Ten [K3F2A].", [("k3f2a",)]),
        ("Ten [ k3f2a ; m7xw2 ]", [("k3f2a", "m7xw2")]),
        ("Ten [k3f2a m7xw2] [k3f2a and m7xw2]", [("k3f2a", "m7xw2")] * 2),
        ("Ten [id: k3f2a], [^k3f2a], [#k3f2a], [Evidence k3f2a]", [("k3f2a",)] * 4),
        ("Ten [[k3f2a]] \\[k3f2a\\]", [("k3f2a",)] * 2),
        ("[k3f2a][m7xw2] [k3f2a] [m7xw2]", [("k3f2a",), ("m7xw2",)] * 2),
        ("[k3f2a, k3f2a, K3F2A]", [("k3f2a",)]),
        ("(see [k3f2a]) and [as told in [k3f2a] above]", [("k3f2a",)] * 2),
        ("- [x] done [k3f2a]\n> quoted [k3f2a]\n1. item [k3f2a]", [("k3f2a",)] * 3),
        ("| a | ten [k3f2a] |\n|---|---|", [("k3f2a",)]),
        ("[k3f2a]: says ten days", [("k3f2a",)]),
        ("- [k3f2a]: ten", [("k3f2a",)]),
        ("A lone ` backtick [k3f2a]\nand ` another", [("k3f2a",)]),
        ("A lone [ bracket [k3f2a]\nand ] another", [("k3f2a",)]),
        ("as in [1][k3f2a]", [("k3f2a",)]),
        ("[k3f2a] (see below)", [("k3f2a",)]),
        ("`x` [k3f2a] `y`", [("k3f2a",)]),
        ("```\ncode\n```\nTen [k3f2a].", [("k3f2a",)]),
        ("```inline``` [k3f2a]", [("k3f2a",)]),
    ],
)
def test_marks_are_found(text: str, found: list[tuple[str, ...]]):
    assert ids(text) == found
    assert raw(parse_markers(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "[Company], [1], [12345], [i], [], [ ], [a1b2c3d4e5], [see k3f2a], [k3f2a, p. 3]",
        "```\n[k3f2a]\n```",
        "```python\nx = a[k3f2a]\n[k3f2a]\n",
        "~~~~\n[k3f2a]\n```\n~~~\n[k3f2a]\n~~~~",
        "- item\n  ```\n  [k3f2a]\n  ```",
        "> ```\n> [k3f2a]\n> ```",
        "`a[k3f2a]` and `` x ` [k3f2a] ``",
        "[k3f2a](https://example.org)",
        "[see [k3f2a] there](https://example.org)",
        "![k3f2a](picture.png)",
        "[text](https://example.org/[k3f2a])",
        "[the policy][k3f2a]",
        "[k3f2a]: https://example.org",
        '  [k3f2a]: <docs/leave.md> "Leave"\n',
        "[k3f2a",
        "k3f2a]",
        "[k3f2a\n]",
    ],
)
def test_what_is_no_mark_stays_text(text: str):
    assert parse_markers(text) == [text]


def test_an_id_in_backticks_alone_may_be_code():
    assert parse_markers("Ten `k3f2a`.") == ["Ten ", Marker("`k3f2a`", ("k3f2a",), is_bare=True), "."]


PARTS = (
    "[k3f2a]",
    "[k3f2a, m7xw2]",
    "【k3f2a】",
    "`[k3f2a]`",
    "[[k3f2a]]",
    "\\[k3f2a\\]",
    "[Company]",
    "[t](u)",
    "[t][k3f2a]",
)
SIGNS = (
    "[",
    "]",
    "(",
    ")",
    "`",
    "``",
    "```",
    "~~~",
    "\n",
    "\\",
    " ",
    "a",
    "k3f2a",
    ",",
    "，",
    "【",
    "】",
    ":",
    "> ",
    "- ",
    "1. ",
)
TEXTS = st.lists(st.sampled_from(PARTS + SIGNS), max_size=14).map("".join)


@given(TEXTS, st.data())
def test_any_cut_of_a_text_gives_the_same(text: str, data: st.DataObject):
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    stream, got = MarkerStream(), []
    for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True):
        got += stream.feed(text[start:end])
    assert merge_pieces([*got, *stream.close()]) == parse_markers(text)


@given(TEXTS)
def test_characters_one_by_one_give_the_same_and_nothing_is_lost(text: str):
    stream = MarkerStream()
    got = [piece for character in text for piece in stream.feed(character)]
    assert merge_pieces([*got, *stream.close()]) == parse_markers(text)
    assert raw(parse_markers(text)) == text


@pytest.mark.parametrize("blanks", [0, 3, 199, 200, 201, 210])
@pytest.mark.parametrize("label", ["\\[k3f2a\\]: http://x.y", "[k3f2a]: http://x.y"])
def test_a_label_is_one_however_it_comes(label: str, blanks: int):
    text, stream = f"Ten.\n{' ' * blanks}{label}", MarkerStream()
    got = [piece for character in text for piece in stream.feed(character)]
    assert merge_pieces([*got, *stream.close()]) == parse_markers(text)


@pytest.mark.parametrize("mark", ["[k3f2a]", "[k3f2a, m7xw2]", "【k3f2a】", "`[k3f2a]`", "[[k3f2a]]", "\\[k3f2a\\]"])
def test_no_part_of_a_mark_is_given_out_before_it_is_whole(mark: str):
    for cut in range(1, len(mark)):
        stream = MarkerStream()
        assert stream.feed(f"Ten{mark[:cut]}") == ["Ten"]
        assert next(piece for piece in stream.feed(f"{mark[cut:]}. ") if isinstance(piece, Marker)).raw == mark


def test_plain_text_is_not_held_back():
    stream = MarkerStream()
    assert stream.feed("Ten days") == ["Ten days"]
    assert stream.feed(" a year.\nAnd") == [" a year.\nAnd"]
    assert stream.feed(" [") == [" "]


@pytest.mark.parametrize("sign", ["[", "`", "[a](", "[a][b", "```x", "[k3f2a", "[k3f2a]: x", "`" * 50, "\\"])
def test_an_open_end_is_held_back_for_a_while_only(sign: str):
    stream, text = MarkerStream(), sign + "x" * (3 * MAX_HELD)
    got = raw([piece for character in text for piece in stream.feed(character)])
    assert len(got) > MAX_HELD
    assert got + raw(stream.close()) == text


HOSTILE = ["[", "`", "[[", "\\[", "[k3f2a, ", "`" * 30 + " ", "> ", "[a](", "\n[", " ", "~~~ "]


@pytest.mark.parametrize("sign", [*HOSTILE, "source  k3f2a, ", "\n[k3f2a]:" + "/" * 900 + "<"])
def test_hostile_repetition_costs_linear_time(sign: str):
    text = sign * (20_000 // len(sign))
    began = time.process_time()
    for opened in ("", "["):
        parse_markers(f"{opened}{text}!")
    assert time.process_time() - began < 3


def test_blanks_behind_a_name_are_read_in_one_way_only():
    began = time.process_time()
    assert ids("[source  k3f2a, ids :  m7xw2]") == [("k3f2a", "m7xw2")]
    assert ids("[" + "source  k3f2a, " * 14 + "!") == []  # each id cost three times the one before it
    assert time.process_time() - began < 1
