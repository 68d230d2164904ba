from __future__ import annotations

import datetime
import decimal
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from graphrag_agent.tools._python_runs import ERROR_CHARACTERS, code_error, cut, render_value

LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.binary(max_size=20)
    | st.decimals()
    | st.dates()
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner) | st.tuples(inner) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(VALUES)
def test_a_small_value_is_shown_as_python_writes_it(value: Any) -> None:
    assert render_value(value, 10**6) == repr(value)


@given(VALUES, st.integers(0, 50))
@example("00'", 1)
@example(b"00'\"", 1)
def test_no_value_is_shown_longer_than_the_limit(value: Any, limit: int) -> None:
    shown = render_value(value, limit)
    assert shown == repr(value) or shown == f"{repr(value)[:limit]}… (cut)"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (set(), "set()"),
        ({3}, "{3}"),
        ((), "()"),
        ((1,), "(1,)"),
        ([{"a": (None, 1.5)}], "[{'a': (None, 1.5)}]"),
        (decimal.Decimal("1.10"), "Decimal('1.10')"),
        (datetime.date(2026, 1, 2), "datetime.date(2026, 1, 2)"),
        (2**20_000, "<an int of 20001 bits>"),
        (ValueError("x"), "<ValueError: print what you need of it>"),
    ],
    ids=["empty-set", "set", "empty-tuple", "tuple", "nested", "decimal", "date", "big", "other"],
)
def test_values_of_each_kind(value: Any, shown: str) -> None:
    assert render_value(value) == shown


def test_a_value_that_holds_itself_or_one_list_a_billion_times_is_shown_at_once() -> None:
    own: list[Any] = []
    own.append(own)
    shared: list[Any] = [0]
    for _ in range(60):
        shared = [shared, shared]
    assert render_value(own) == "[" * 12 + "…" + "]" * 12
    assert render_value(shared, 1_000).endswith("… (cut)")


def test_no_repr_of_an_unknown_object_is_called() -> None:
    class Trap:
        def __repr__(self) -> str:
            raise AssertionError

    assert render_value([Trap()]) == "[<Trap: print what you need of it>]"


def test_a_long_traceback_keeps_its_beginning_and_its_end() -> None:
    said = str(code_error(f"line 3{'x' * 10_000}ValueError: no", ""))
    assert "line 3" in said and "ValueError: no" in said and len(said) < ERROR_CHARACTERS + 100


def test_a_cut_says_how_much_is_missing() -> None:
    assert cut("abcdef", 4, "printed") == "abcd…\n(2 more characters printed)"
    assert cut("abcd", 4, "printed") == "abcd"
