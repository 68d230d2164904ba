"""What holds for every text."""

import itertools
import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from graphrag_agent.models.text_tools.dialects import READERS, STRAY
from graphrag_agent.models.text_tools.items import Malformed
from graphrag_agent.models.text_tools.parsing import parse_text
from tests.unit.models.text_tools.samples import (
    DIALECTS,
    NAMES,
    calls,
    calls_of,
    markers,
    parse_pieces,
    shreds,
    text_of,
    wild,
    words,
)


@pytest.mark.parametrize("write", DIALECTS.values(), ids=DIALECTS)
@given(before=words, calls=calls, after=words, size=st.integers(1, 9))
@settings(max_examples=40, deadline=None)
def test_words_and_calls_come_back_as_they_were(write, before, calls, after, size):
    text = before + write(calls) + after
    items = parse_pieces([text[at : at + size] for at in range(0, len(text), size)])
    assert calls_of(items) == calls
    assert "".join(text_of(items).split()) == "".join((before + after).split())
    assert not [item for item in items if isinstance(item, Malformed)]


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


@pytest.mark.parametrize("write", DIALECTS.values(), ids=DIALECTS)
@given(before=words, calls=calls, after=words)
@settings(max_examples=5, deadline=None)
def test_a_text_cut_off_anywhere_has_the_calls_it_would_have_had_and_no_markup(write, before, calls, after):
    text = before + write(calls) + after
    for end in range(len(text)):
        items = parse_text(text[:end], NAMES)
        found = calls_of(items)
        assert found == calls[: len(found)]
        assert not [marker for marker in (*READERS, *STRAY) if marker in text_of(items)]


@pytest.mark.parametrize("write", DIALECTS.values(), ids=DIALECTS)
@given(before=words, calls=calls, after=words, data=st.data())
@settings(max_examples=30, deadline=None)
def test_damaged_markup_is_read_the_same_however_it_is_cut(write, before, calls, after, data):
    text = before + write(calls) + after
    for _ in range(data.draw(st.integers(1, 3))):
        at, length = data.draw(st.integers(0, len(text))), data.draw(st.integers(0, 12))
        text = text[:at] + data.draw(st.just("") | shreds | markers | st.text(max_size=3)) + text[at + length :]
    size = data.draw(st.integers(1, 7))
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    assert parse_pieces(pieces) == parse_pieces(list(text)) == parse_text(text, NAMES)
