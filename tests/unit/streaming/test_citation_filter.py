"""Streamed text equals the final one, however it is cut."""

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_agent.citations import Evidence, resolve_citations
from graphrag_agent.streaming.citation_filter import CitationFilter

KNOWN = {id_: Evidence(id_, id_, "d", "t", "s", None, "", 1.0, 0, 1, "x") for id_ in ("k3f2a", "m7xw2", "a2b3c4d")}
TEXTS = [
    "Ten days [k3f2a].",
    "Ten days [k3f2a, x9y8z, M7XW2] and more [q2w3e].\nNew line [m7xw2]",
    "【k3f2a】 `[k3f2a]` [Company] [1] [a1b2",
    "[k3f2a](http://x) [k3f2a]: http://x\n[x9y8z] [m7xw2]: text",
    "[k3f2a] (in brackets) [x9y8z](not)",
    "A [x] [k3f2a][m7xw2] [x][k3f2a] `k3f2a` `x9y8z`",
    "```\n[k3f2a] [x9y8z]\n```\n[x9y8z] after  \t[x9y8z]  end  ",
    "  [x9y8z]\n   [k3f2a]   ",
    "half a mark at the end [k3f2",
    "`code`[x9y8z]`code` ``a``[x9y8z, q2w3e]  [x9y8z]`b`",
    "`x9y8z`[x9y8z] `k3f2a`",
]
MARKS = ["[k3f2a]", "[x9y8z]", "[k3f2a, x9y8z]", "【m7xw2】", "`[k3f2a]`"]
SIGNS = ["`", "```", "[", "]", "(", ")", ":", " ", "  ", "\t", "\n", "\\", ", ", "-", "> "]
PARTS = st.sampled_from([*MARKS, *SIGNS, "text", "`code`", "[1]", "[x](y)", "k3f2a", "http://x"])


def streamed(pieces: list[str]) -> list[str]:
    stream = CitationFilter(KNOWN)
    return [*(stream.feed(piece) for piece in pieces), stream.close()]


@pytest.mark.parametrize("text", TEXTS)
def test_every_cut_in_two_gives_the_final_text_and_never_half_a_mark(text: str):
    final = resolve_citations(text, KNOWN).text
    for at in range(len(text) + 1):
        shown = streamed([text[:at], text[at:]])
        assert "".join(shown) == final
        assert final.startswith(shown[0])
    assert "".join(streamed(list(text))) == final


@given(st.lists(PARTS, max_size=25).map("".join), st.lists(st.integers(0, 150), max_size=8))
def test_any_text_in_any_pieces_gives_the_final_text(text: str, cuts: list[int]):
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    pieces = [text[start:end] for start, end in pairwise(places)]
    assert "".join(streamed(pieces)) == resolve_citations(text, KNOWN).text


def test_plain_text_is_not_held_back():
    stream = CitationFilter(KNOWN)
    assert [stream.feed(piece) for piece in ("Ten", " days", " [k3", "f2a", "]", ".")] == [
        *("Ten", " days", "", "", "", " [k3f2a].")
    ]


@pytest.mark.parametrize("text", ["[" * 3000, "[k3f2a, " * 1000, "`" * 3000, "[x " * 2000, "\\" * 3000])
def test_what_never_closes_is_shown_after_all_and_quickly(text: str):
    stream, began = CitationFilter(KNOWN), time.process_time()
    shown = "".join(stream.feed(character) for character in text)
    assert len(text) - len(shown) <= 1_100
    assert shown + stream.close() == resolve_citations(text, KNOWN).text
    assert time.process_time() - began < 5
