"""What the model reads of a schema, and that a large table hides no other."""

from __future__ import annotations

from graphrag_agent.tools._database_schema import ColumnInfo, ForeignKey, TableInfo, render_schema

IDS = TableInfo(
    "ids",
    ("a", "b"),
    described={"a": ColumnInfo("INTEGER", "the first"), "b": ColumnInfo("TEXT")},
    primary_key=("a", "b"),
    foreign_keys=(ForeignKey(("b",), "others", ("id",)),),
    comment="All\nids",
)
IDS_TEXT = "table ids -- All ids\n  a INTEGER -- the first\n  b TEXT -> others(id)\n  primary key (a, b)"


def wide(name: str, count: int) -> TableInfo:
    columns = tuple(f"column_{number:04}" for number in range(count))
    return TableInfo(name, columns, described=dict.fromkeys(columns, ColumnInfo("CHARACTER VARYING(255)")))


def test_what_fits_is_shown_whole() -> None:
    assert render_schema([IDS, IDS], max_characters=500) == (f"{IDS_TEXT}\n{IDS_TEXT}", [])
    assert render_schema([], max_characters=500) == ("", [])


def test_a_table_that_is_too_long_has_its_last_columns_by_name_and_hides_no_other() -> None:
    text, left_out = render_schema([IDS, wide("logs", 300), wide("more", 300), IDS], max_characters=8_000)
    assert text.startswith(f"{IDS_TEXT}\ntable logs\n  column_0000 CHARACTER VARYING(255)\n  column_0001 CHARACTER")
    assert 7_900 < len(text) <= 8_000
    whole = text.count("CHARACTER VARYING(255)\n")
    assert f"  … {300 - whole} more columns: column_{whole:04}, column_{whole + 1:04}, " in text
    assert text.endswith(", column_0299") and left_out == ["more", "ids"]


def test_a_table_after_one_for_which_there_is_no_room_is_shown() -> None:
    text, left_out = render_schema([wide("logs", 100), wide("more", 300), IDS], max_characters=4_500)
    assert text.endswith(IDS_TEXT) and left_out == ["more"]


def test_a_table_whose_names_alone_are_too_many_is_cut() -> None:
    text, left_out = render_schema([wide("logs", 2_000), IDS], max_characters=8_000)
    assert text.startswith("table logs\n  … 2000 more columns: column_0000, column_0001, ")
    assert len(text) == 8_000 and left_out == ["ids"]
