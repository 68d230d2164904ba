"""Rows as a table that is never longer than allowed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from graphrag_agent.tools._query_result import Rows, fitted, render_table, value_text

VALUES = st.none() | st.text(max_size=500).map(value_text)


@given(st.data(), st.integers(1, 30), st.integers(0, 30), st.integers(2_000, 6_000), st.booleans())
def test_the_table_is_as_long_as_allowed_and_no_row_is_lost_untold(
    data: st.DataObject, width: int, height: int, limit: int, is_cut: bool
) -> None:
    columns = data.draw(st.lists(st.text(max_size=400), min_size=width, max_size=width))
    kinds = data.draw(st.lists(st.lists(VALUES, min_size=width, max_size=width), min_size=1, max_size=3))
    rows = Rows(columns, [kinds[place % len(kinds)] for place in range(height)], is_cut)
    shown = fitted(rows, limit)
    assert len(render_table(shown)) <= limit
    assert len(shown.columns) + shown.more_columns == width and shown.columns == columns[: len(shown.columns)]
    assert [list(row) for row in shown.rows] == [row[: len(shown.columns)] for row in rows.rows[: len(shown.rows)]]
    assert len(shown.rows) >= min(1, height) and len(shown.columns) >= 1
    assert shown.is_cut == (is_cut or len(shown.rows) < height)


def test_what_is_short_enough_is_whole() -> None:
    rows = Rows(["a", "b"], [["1", None], ["2", "x"]], False)
    size = len(render_table(rows))
    assert fitted(rows, size) == rows
    assert fitted(rows, size - 1) == Rows(["a", "b"], [["1", None]], True)


def test_bytes_in_a_list_are_shown_like_others() -> None:
    assert value_text([b"\x00\xff", None]) == "[\"x'00ff' (2 bytes)\", null]"
