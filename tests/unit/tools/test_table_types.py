"""What the cells of a column are taken for: as a whole, and never by a guess."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_agent.tools import _table_types
from graphrag_agent.tools._table_types import MISSING, TypedColumn, infer_types


def typed(*cells: str, **more: bool) -> TypedColumn:
    return infer_types([cells], **more)[0]


@pytest.mark.parametrize(
    ("cells", "sql_type", "texts"),
    [
        (["1", "", "-20"], "BIGINT", ["1", None, "-20"]),
        (["007", "12"], "VARCHAR", ["007", "12"]),
        (["0", "12"], "BIGINT", ["0", "12"]),
        (["12345678901234567890"], "HUGEINT", ["12345678901234567890"]),
        (["1.5", "2.25", ".5"], "DECIMAL(3,2)", ["1.5", "2.25", ".5"]),
        (["0.123456789"], "DECIMAL(10,9)", ["0.123456789"]),
        (["0.30000000000000004", "2"], "DOUBLE", ["0.30000000000000004", "2"]),
        (["1e5", "2"], "DOUBLE", ["1e5", "2"]),
        (["1e999"], "VARCHAR", ["1e999"]),
        (["1,234", "12"], "BIGINT", ["1234", "12"]),
        (["1,234,567.89", "3"], "DECIMAL(9,2)", ["1234567.89", "3"]),
        (["1,5", "2,25"], "DECIMAL(3,2)", ["1.5", "2.25"]),
        (["0,123"], "DECIMAL(4,3)", ["0.123"]),
        (["1.234,5", "7"], "DECIMAL(5,1)", ["1234.5", "7"]),
        (["1\u00a0234,5"], "DECIMAL(5,1)", ["1234.5"]),
        (["1'234", "2"], "BIGINT", ["1234", "2"]),
        (["(1,200)", "5", "\u22127"], "BIGINT", ["-1200", "5", "-7"]),
        (["1.2.3"], "VARCHAR", ["1.2.3"]),
        (["12,34,567"], "VARCHAR", ["12,34,567"]),
        (["12:30"], "VARCHAR", ["12:30"]),
        (["٣"], "VARCHAR", ["٣"]),
        (["true", "FALSE", ""], "BOOLEAN", ["true", "false", None]),
        (["yes", "no"], "VARCHAR", ["yes", "no"]),
        (["2020-01-02", "1999-12-31"], "DATE", ["2020-01-02", "1999-12-31"]),
        (["2020-02-30"], "VARCHAR", ["2020-02-30"]),
        (["2020-01-02 00:00:00"], "DATE", ["2020-01-02"]),
        (["2020-01-02 03:04", "2020-01-03"], "TIMESTAMP", ["2020-01-02 03:04:00", "2020-01-03 00:00:00"]),
        (["1.2.2020"], "DATE", ["2020-02-01"]),
        (["13/01/2020", "1/2/2020"], "DATE", ["2020-01-13", "2020-02-01"]),
        (["1/13/2020", "1/2/2020"], "DATE", ["2020-01-13", "2020-01-02"]),
        (["13/1/2020", "1/13/2020"], "VARCHAR", ["13/1/2020", "1/13/2020"]),
        (["Jan 1 2000", "March 3, 2001", "5 Sept 2002"], "DATE", ["2000-01-01", "2001-03-03", "2002-09-05"]),
        (["1", "2", "x"], "VARCHAR", ["1", "2", "x"]),
        (["", ""], "VARCHAR", [None, None]),
        (["-", "N/A"], "VARCHAR", ["-", "N/A"]),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_a_column_is_what_all_its_cells_are(cells: list[str], sql_type: str, texts: list[str | None]) -> None:
    assert typed(*cells)[:2] == (sql_type, texts)


@pytest.mark.parametrize(
    ("cells", "note"),
    [
        (["12%", "3.5%"], "in percent"),
        (["$1,200", "$2.50"], "in $"),
        (["5 €", "7,5 €"], "in €"),
        (["5", "(1,200)"], "(1,200) is -1200"),
        (["$5", "($7)", "-"], "in $; ($7) is -7; '-' is NULL"),
        (["-", "5"], "'-' is NULL"),
        (["-", "n/a", "5"], "'-', 'n/a' are NULL"),
        (["#DIV/0!", "5"], "'#DIV/0!' is NULL"),
        (["2020-01-01T12:00:00+02:00"], "in UTC"),
        (["13/01/2020"], "written with the day first"),
        (["1/2/2020", "3/4/2020"], "dates, but day or month may come first, so they stay text"),
        (["1,5", "2,500", "n.k."], ""),
        (["14,857", "10,070", "Swing"], "mostly numbers, so TRY_CAST it without its ','; others are 'Swing'"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_the_note_tells_what_the_type_does_not(cells: list[str], note: str) -> None:
    assert typed(*cells).note == note


def test_units_of_two_kinds_are_no_numbers() -> None:
    assert typed("$1", "€2").sql_type == "VARCHAR"
    assert typed("$1", "2").sql_type == "VARCHAR"


def test_times_of_day_with_a_zone_become_utc() -> None:
    assert typed("2020-01-01T00:30:00+02:00").cells == ["2019-12-31 22:30:00"]
    assert typed("2020-01-01T00:30:00Z", "2020-01-01 00:30:00").sql_type == "VARCHAR"


def test_between_semicolons_a_comma_or_point_that_could_be_either_stays_text() -> None:
    column = typed("1,234", "2,500", is_comma_likely=True)
    assert (column.sql_type, column.note) == (
        "VARCHAR",
        "numbers, but '.' or ',' may part decimals or thousands, so they stay text",
    )
    assert typed("1.234", is_comma_likely=True).sql_type == "VARCHAR"
    assert typed("1,25", is_comma_likely=True)[:2] == ("DECIMAL(3,2)", ["1.25"])


def test_another_column_shows_which_sign_it_is() -> None:
    first, second = infer_types([["1,234"], ["0,5"]], is_comma_likely=True)
    assert (first.cells, second.cells) == (["1.234"], ["0.5"])
    first, second = infer_types([["1,234"], ["1,234.5"]], is_comma_likely=True)
    assert (first.cells, second.cells) == (["1234"], ["1234.5"])
    first, *_ = infer_types([["1,234"], ["1,234.5"], ["0,5"]], is_comma_likely=True)
    assert first.sql_type == "VARCHAR", "columns that say both show nothing"


def test_between_commas_a_decimal_comma_elsewhere_leaves_it_open() -> None:
    thousands, decimal = infer_types([["1,234"], ["0,5"]])
    assert (thousands.sql_type, decimal.cells) == ("VARCHAR", ["0.5"])
    thousands, *_ = infer_types([["1,234"], ["0,5"]], texts={1})
    assert thousands.cells == ["1234"], "what the file calls text shows nothing"
    whole, *_ = infer_types([["1234"], ["0,5"]])
    assert whole.cells == ["1234"]


def test_what_the_file_calls_text_can_be_a_date_but_no_number() -> None:
    assert [column.sql_type for column in infer_types([["12"], ["2020-01-02"], ["true"]], texts={0, 1, 2})] == [
        "VARCHAR",
        "DATE",
        "VARCHAR",
    ]


def test_numbers_and_one_word_are_given_up_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(_table_types, "_amount", asked.append)
    monkeypatch.setattr(_table_types, "_worded", asked.append)
    column = typed(*map(str, range(1_000)), "total")
    assert column[::2] == ("VARCHAR", "mostly numbers, so TRY_CAST it; others are 'total'")
    assert asked == ["0"], "a million cells took half of the call's seconds"


@given(st.lists(st.decimals(allow_nan=False, allow_infinity=False, places=2, min_value=-(10**9), max_value=10**9)))
def test_money_written_with_thousands_keeps_its_value(values: list[Decimal]) -> None:
    cells = [f"{value:,.2f}" for value in values]
    column = typed(*cells)
    assert [Decimal(cell or "") for cell in column.cells] == values


@given(st.lists(st.text(max_size=12).map(str.strip)))
def test_text_is_never_changed_and_never_lost(cells: list[str]) -> None:
    column = typed(*cells)
    if column.sql_type == "VARCHAR":
        assert column.cells == [cell or None for cell in cells]
    else:
        missing = [cell for cell, text in zip(cells, column.cells, strict=True) if text is None]
        assert all(not cell or cell.casefold() in MISSING for cell in missing)


@given(st.lists(st.from_regex(r"[-+(]?[$€]?[0-9.,' ]{1,12}(e[0-9]{1,3})?[%)]?", fullmatch=True), max_size=4))
def test_what_is_called_a_number_is_one(cells: list[str]) -> None:
    column = typed(*[cell.strip() for cell in cells])
    if column.sql_type != "VARCHAR":
        assert all(Decimal(cell).is_finite() for cell in column.cells if cell is not None)
