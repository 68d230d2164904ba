"""What a caller says about documents is kept exactly, or refused with the reason."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_agent.errors import SettingsError
from graphrag_agent.retrieval.ingestion.labels import checked_groups, checked_metadata, checked_name
from graphrag_agent.retrieval.stores.payload import RESERVED_KEYS


@pytest.mark.parametrize("name", ["汉字", 'O\'Brien "x"', "a,b|c=d", " padded ", "*", "é", "e\u0301", "%", "x" * 256])
def test_a_name_is_kept_as_it_is(name: str) -> None:
    assert checked_name("collection", name) == name


@pytest.mark.parametrize("name", ["", " ", "\t", "a\0b", "line\nbreak", "\ud800", "x" * 257, 7, None], ids=repr)
def test_a_name_that_nobody_could_type_again_is_refused(name: Any) -> None:
    with pytest.raises(SettingsError, match=r"^tenant=.*name"):
        checked_name("tenant", name)


def test_groups_come_in_order_each_once_and_a_text_is_one_group() -> None:
    assert checked_groups(["legal", "hr", "legal"]) == ("hr", "legal")
    assert checked_groups("hr") == ("hr",)
    assert checked_groups([]) == ()


@pytest.mark.parametrize("groups", [["hr", "*"], "*", ["hr", ""], ["a\0"]], ids=repr)
def test_a_group_that_would_open_or_close_everything_is_refused(groups: Any) -> None:
    with pytest.raises(SettingsError, match="groups="):
        checked_groups(groups)


@pytest.mark.parametrize("key", sorted(RESERVED_KEYS))
def test_reserved_keys_are_refused_at_the_top_and_mean_nothing_below(key: str) -> None:
    with pytest.raises(SettingsError, match=f"'{key}' is reserved"):
        checked_metadata({"year": 1, key: "x"})
    assert checked_metadata({"nested": {key: ["x"]}}) == {"nested": {key: ["x"]}}


def nested(depth: int) -> Any:
    return {"deeper": nested(depth - 1)} if depth else "end"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (object(), "object is none of"),
        (b"bytes", "bytes is none of"),
        ({1, 2}, "set is none of"),
        ({1: "x"}, "keys must be text"),
        ({"a": {None: "x"}}, "keys must be text"),
        (float("nan"), "must be finite"),
        ([float("inf")], "must be finite"),
        (2**64, "at most 64 bits"),
        ("half \ud800", "half a character"),
        ({"\udfff": 1}, "half a character"),
        (nested(40), "nested more than 32 deep"),
        (nested(900), "nested more than 32 deep"),
    ],
    ids=lambda value: repr(value).partition(" at 0x")[0][:40],
)
def test_metadata_that_would_not_come_back_is_refused(value: object, reason: str) -> None:
    with pytest.raises(SettingsError, match=f"metadata 'key' can't be stored as JSON: .*{reason}"):
        checked_metadata({"key": value})


def test_metadata_that_holds_itself_is_refused() -> None:
    ring: dict[str, object] = {}
    ring["ring"] = ring
    with pytest.raises(SettingsError, match="nested"):
        checked_metadata(ring)


STORABLE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), STORABLE, max_size=4))
def test_all_other_metadata_is_copied_as_it_is(metadata: dict[str, object]) -> None:
    kept = {f"my {key}": value for key, value in metadata.items()}
    copied = checked_metadata(kept)
    assert json.dumps(copied) == json.dumps(kept)
    assert copied is not kept
