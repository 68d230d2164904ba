"""Every event survives its JSON form."""

import json
from dataclasses import fields
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_agent import events
from graphrag_agent.citations import Citation
from graphrag_agent.errors import SettingsError

KINDS = get_args(events.Event)
TEXT = st.text(max_size=20)
JSON = st.dictionaries(TEXT, st.recursive(st.none() | st.booleans() | st.integers() | TEXT, st.lists, max_leaves=3))
CITATIONS = st.builds(Citation, **{field.name: TEXT for field in fields(Citation) if field.type == "str"})
VALUES = {
    "arguments": JSON,
    "outcome": JSON,
    "calls": st.lists(JSON, max_size=2).map(tuple),
    "citation": CITATIONS,
    "citations": st.lists(CITATIONS, max_size=3).map(tuple),
    "found": st.integers(),
    "is_error": st.booleans(),
    "seconds": st.floats(allow_nan=False, allow_infinity=False),
}


def built(kind: Any) -> st.SearchStrategy[Any]:
    names = [field.name for field in fields(kind) if field.name != "type"]
    return st.builds(kind, **{name: VALUES.get(name, TEXT) for name in names})


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_an_event_is_the_same_after_json(kind: Any, data: st.DataObject):
    event = data.draw(built(kind))
    sent = json.loads(json.dumps(event.as_dict()))
    assert events.event_from_dict(sent) == event
    assert events.event_from_dict({**sent, "of a later version": 1}) == event


def test_what_is_no_event_is_named():
    with pytest.raises(SettingsError, match="type='nonsense' is no event; there are: turn_started"):
        events.event_from_dict({"type": "nonsense"})
    with pytest.raises(SettingsError, match=r"an event of type 'text_delta' can't be read: .*text"):
        events.event_from_dict({"type": "text_delta"})
    with pytest.raises(SettingsError, match="is no event"):
        events.event_from_dict({"type": ["unhashable"]})
    with pytest.raises(SettingsError, match="can't be read"):
        events.event_from_dict({"type": "citation", "citation": 1})
