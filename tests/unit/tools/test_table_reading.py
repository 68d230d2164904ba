"""Tables as they stand in files: what is a header, where the data is, what is refused."""

from __future__ import annotations

import csv
import json
import zipfile
from datetime import time
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path

import pytest

from graphrag_agent.errors import ParseError
from graphrag_agent.tools import _table_reading
from graphrag_agent.tools._sheet_places import column_letters
from graphrag_agent.tools._table_reading import RawTable, read_tables
from graphrag_agent.tools._table_suffixes import SUFFIXES
from graphrag_agent.tools._table_types import infer_types
from tests.workbooks import workbook

WIKI = (Path(__file__).parents[3] / "../shared/data/sql/wikitablequestions/csv").resolve()
DOCUMENTS = (Path(__file__).parents[3] / "../shared/data/documents").resolve()
needs_kreuzberg = pytest.mark.skipif(find_spec("kreuzberg") is None, reason="the extra docs is not installed")


def one(suffix: str, data: bytes | str) -> RawTable:
    (table,) = read_tables(suffix, data.encode() if isinstance(data, str) else data)
    return table


def test_a_csv_is_its_rows_below_the_header() -> None:
    table = one(".csv", "Name,Unit price\nbolt,0.30\nnut,\n\nwasher,0.1\n")
    assert list(table.titles) == ["Name", "Unit price"]
    assert list(table.columns) == [["bolt", "nut", "washer"], ["0.30", "", "0.1"]]
    assert table.rows == (2, 5), "as a spreadsheet counts, blank rows too"


def test_what_is_above_the_header_is_told() -> None:
    table = one(".csv", "Prices of May\n\nName,Price\nbolt,1\nnut,2\n")
    assert (list(table.titles), table.rows) == (["Name", "Price"], (4, 5))
    assert table.notes == ("above the header: Prices of May",)


def test_columns_without_a_name_or_with_the_same_one_get_their_own() -> None:
    table = one(".csv", "a,,a\n1,2,3\n4,5,6\n")
    assert (list(table.titles), table.rows, table.notes) == (["a", "column 2", "a (2)"], (2, 3), ())
    assert list(one(".csv", ",a,a\nx,2,3\ny,5,6\n").titles) == ["column 1", "a", "a (2)"]


def test_a_table_that_begins_with_data_keeps_its_first_row() -> None:
    table = one(".csv", "1,2\n3,4\n")
    assert (list(table.titles), list(table.columns), table.rows) == (
        ["column 1", "column 2"],
        [["1", "3"], ["2", "4"]],
        (1, 2),
    )


def test_a_lone_row_may_be_the_header_of_nothing() -> None:
    assert one(".csv", "item,price\n").notes == ("no row names the columns; if this one does, the table has no data",)


def test_line_ends_inside_cells_and_a_declared_delimiter() -> None:
    table = one(".csv", 'sep=;\na;b\n"x\ny";"1;2"\n')
    assert (list(table.columns), table.rows, table.is_comma_likely) == ([["x\ny"], ["1;2"]], (3, 3), True)


@pytest.mark.parametrize(("delimiter", "is_likely"), [(",", False), (";", True), ("\t", True), ("|", True)])
def test_a_decimal_comma_is_likely_where_commas_part_no_cells(delimiter: str, is_likely: bool) -> None:
    rows = [["name", "price"], ["bolt", "1"], ["nut", "2"]]
    assert one(".tsv", "".join(delimiter.join(row) + "\n" for row in rows)).is_comma_likely is is_likely


def test_sixteen_thousand_columns_are_cut_and_it_is_told() -> None:
    header = ",".join(f"c{at}" for at in range(16_384))
    table = one(".csv", f"{header}\n{','.join(['x'] * 16_384)}\n")
    assert (len(table.columns), table.notes) == (500, ("15884 more columns are left out",))


def test_a_table_of_too_many_cells_is_refused_before_it_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_table_reading, "MAX_CELLS", 100)
    with pytest.raises(ParseError, match="cells; split it into smaller files"):
        read_tables(".csv", b"a,b\n" + b"1,2\n" * 50)
    wide = b",".join([b"x"] * 40) + b"\n" + b"1\n" * 20
    with pytest.raises(ParseError, match="cells; split it into smaller files"):
        read_tables(".csv", wide)


def test_a_parquet_of_too_many_cells_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    duckdb = pytest.importorskip("duckdb", reason="the extra tools is not installed")
    path = tmp_path / "made.parquet"
    duckdb.sql("SELECT g AS a, g AS b FROM range(50) AS r(g)").write_parquet(str(path))
    assert one(".parquet", path.read_bytes()).rows == (1, 50)
    monkeypatch.setattr(_table_reading, "MAX_CELLS", 99)
    with pytest.raises(ParseError, match="more than 99 cells; split it into smaller files"):
        read_tables(".parquet", path.read_bytes())


@needs_kreuzberg
def test_a_sheet_says_where_its_cells_are() -> None:
    cells = {"C4": "Name", "D4": "Amount", "C5": "a", "D5": 1.5, "C6": "b", "D6": "007"}
    table = one(".xlsx", workbook({"Q1 sales": cells}))
    assert (table.sheet, list(table.titles), list(table.columns)) == (
        "Q1 sales",
        ["Name", "Amount"],
        [["a", "b"], ["1.5", "007"]],
    )
    assert (list(table.places), table.rows) == ([3, 4], (5, 6))


@needs_kreuzberg
def test_a_sheet_of_a_chart_moves_no_place_to_another_sheet() -> None:
    sheets = {"One": {"A1": "a", "A2": 1}, "Chart": None, "Two": {"C5": "b", "C6": 2}, "A & B": {"D8": "c", "D9": 3}}
    places = [(table.sheet, list(table.places), table.rows) for table in read_tables(".xlsx", workbook(sheets))]
    assert places == [("One", [1], (2, 2)), ("Two", [3], (6, 6)), ("A & B", [4], (9, 9))]


@needs_kreuzberg
def test_an_empty_column_between_others_is_no_column_but_keeps_its_place() -> None:
    table = one(".xlsx", workbook({"S": {"A1": "a", "C1": "c", "A2": "x", "C2": 2, "A3": "y", "C3": 3}}))
    assert (list(table.titles), list(table.places)) == (["a", "c"], [1, 3])


@needs_kreuzberg
def test_formulas_without_a_result_are_counted_and_those_with_one_are_values() -> None:
    cells = {"A1": "a", "B1": "b", "A2": "x", "B2": "<f>1+1</f><v>2</v>", "A3": "y", "B3": "<f>B2*2</f>"}
    table = one(".xlsx", workbook({"S": cells}))
    assert (list(table.columns[1]), table.notes) == (
        ["2", ""],
        ("1 formulas have no stored result and are NULL",),
    )


@needs_kreuzberg
def test_lost_formulas_are_told_of_the_table_that_has_them() -> None:
    rows = ["Region", "Q1", "Q2"], ["North", 1, 2], [], ["Product", "Units", "Price"], ["Bolt", 5, "<f>B5*2</f>"]
    cells = {f"{letter}{at}": cell for at, row in enumerate(rows, 1) for letter, cell in zip("ABC", row, strict=False)}
    first, second = read_tables(".xlsx", workbook({"S": {**cells, "A6": "Nut", "B6": 6, "C6": 3}}))
    assert (first.notes, second.notes) == ((), ("1 formulas have no stored result and are NULL",))


@needs_kreuzberg
def test_times_and_failed_formulas_are_as_the_spreadsheet_shows_them() -> None:
    rows = [("Shift", "Share"), (time(7, 30), "#DIV/0!"), (time(15, 0, 5), "#N/A"), (time(0), 0.5)]
    cells = {f"{letter}{at}": cell for at, row in enumerate(rows, 1) for letter, cell in zip("AB", row, strict=True)}
    table = one(".xlsx", workbook({"S": cells}))
    assert list(table.columns) == [["07:30:00", "15:00:05", "00:00:00"], ["#DIV/0!", "#N/A", "0.5"]]
    share = infer_types(table.columns)[1]
    assert share == ("DECIMAL(2,1)", [None, None, "0.5"], "'#DIV/0!', '#N/A' are NULL")


@needs_kreuzberg
def test_a_merged_header_above_the_header_is_told() -> None:
    cells = {"A1": "Sales", "A2": "region", "B2": "north", "C2": "south", "A3": "May", "B3": 1, "C3": 2}
    table = one(".xlsx", workbook({"S": cells}, merged="A1:C1"))
    assert (list(table.titles), table.notes) == (["region", "north", "south"], ("above the header: Sales",))


@needs_kreuzberg
def test_cells_that_are_merged_over_rows_of_the_data_are_told() -> None:
    cells = {"A1": "region", "B1": "n", "A2": "north", "B2": 1, "B3": 2, "A4": "south", "B4": 3}
    table = one(".xlsx", workbook({"S": cells}, merged="A2:A3"))
    assert (list(table.columns[0]), table.notes) == (
        ["north", "", "south"],
        ("merged over several rows: 1; only the first row of each has the value, the others NULL",),
    )
    assert one(".xlsx", workbook({"S": cells}, merged="A1:B1")).notes == ()


@needs_kreuzberg
def test_each_sheet_with_rows_is_a_table() -> None:
    rows = {"A1": "a", "A2": "x", "A3": "y"}
    tables = read_tables(".xlsx", workbook({"One": rows, "Empty": {}, "Two": rows}))
    assert [table.sheet for table in tables] == ["One", "Two"]


@needs_kreuzberg
def test_a_zip_bomb_is_refused_unopened() -> None:
    out = BytesIO(workbook({"S": {"A1": "a"}}))
    with (
        zipfile.ZipFile(out, "a", zipfile.ZIP_DEFLATED) as archive,
        archive.open("xl/worksheets/sheet2.xml", "w") as part,
    ):
        for _ in range(600):
            part.write(b" " * 1_000_000)
    assert len(out.getvalue()) < 1_000_000
    with pytest.raises(ParseError, match="unpacks to more than 500 MB"):
        read_tables(".xlsx", out.getvalue())


def test_json_lines_are_rows_and_texts_stay_texts() -> None:
    lines = [
        {"id": "007", "n": 1.10, "ok": True, "at": {"city": "Rome"}, "tags": ["a", "b"]},
        {"id": "8", "more": [{"x": 1}]},
    ]
    table = one(".jsonl", "\n".join(map(json.dumps, lines)))
    assert list(table.titles) == ["id", "n", "ok", "at.city", "tags", "more"]
    assert [list(column) for column in table.columns] == [
        ["007", "8"],
        ["1.1", ""],
        ["true", ""],
        ["Rome", ""],
        ["a, b", ""],
        ["", '[{"x": "1"}]'],
    ]
    assert (table.texts, table.rows) == (frozenset({0, 3, 4, 5}), (1, 2))


def test_two_cells_of_one_name_in_a_record_are_both_kept() -> None:
    table = one(".json", '[{"a": {"b": 1}, "a.b": 2, " a.b": 3}, {"a.b": 4}]')
    assert dict(zip(table.titles, table.columns, strict=True)) == {
        "a.b": ["1", "4"],
        "a.b (2)": ["2", ""],
        "a.b (3)": ["3", ""],
    }


def test_lists_of_records_inside_a_json_object_are_tables_of_their_own() -> None:
    told = {"people": [{"a": 1}, {"a": 2}], "name": "x", "places": [{"b": 1}], "none": []}
    assert [(table.sheet, list(table.columns)) for table in read_tables(".json", json.dumps(told).encode())] == [
        ("people", [["1", "2"]]),
        ("places", [["1"]]),
    ]


def test_half_a_character_and_zero_bytes_are_no_text() -> None:
    assert list(one(".json", '[{"a\\u0000": "x\\ud800"}]').titles) == ["a"]
    assert one(".json", '[{"a": "x\\ud800"}]').columns[0] == ["x\ufffd"]
    assert one(".json", '{"\\ud800 orders": [{"a": 1}]}').sheet == "\ufffd orders"


@pytest.mark.parametrize(
    ("suffix", "data", "reason"),
    [
        (".csv", b"", "holds no table"),
        (".csv", b"\x00\x01\x02\x03" * 100, "binary"),
        (".json", b"[1, 2]", "holds no table"),
        (".json", b"{", "not valid JSON"),
        (".jsonl", b'{"a": 1}\n{"a": ', "line 2 is not valid JSON"),
        (".json", b"[{}]", "holds no table"),
        (".json", b'{"title": "x", "items": [{"a": null}]}', "holds no table"),
        (".json", b"[" * 100_000, "damaged"),
        (".xlsx", b"no zip", "damaged"),
    ],
)
def test_what_is_no_table_is_refused_with_the_reason(suffix: str, data: bytes, reason: str) -> None:
    with pytest.raises(ParseError, match=reason):
        read_tables(suffix, data)


def test_each_suffix_has_a_reader() -> None:
    assert set(_table_reading.READERS) == SUFFIXES


@pytest.mark.parametrize(("number", "letters"), [(1, "A"), (26, "Z"), (27, "AA"), (702, "ZZ"), (16_384, "XFD")])
def test_columns_are_named_as_in_a_spreadsheet(number: int, letters: str) -> None:
    assert column_letters(number) == letters


@pytest.mark.skipif(not WIKI.is_dir(), reason="../shared/data is not laid here")
def test_tables_of_wikipedia_are_read_cell_by_cell() -> None:
    odd = {"203-csv/167.csv": "a header of two rows", "204-csv/18.csv": "years in the header, and short rows"}
    files = sorted(WIKI.glob("*/*.csv"))
    for path in files:
        name = path.relative_to(WIKI).as_posix()
        with path.open(newline="", encoding="utf-8") as file:
            gold = [[cell.strip() for cell in row] for row in csv.reader(file, escapechar="\\", doublequote=False)][1:]
        table = one(".csv", path.read_bytes())
        columns = dict(zip(table.places, table.columns, strict=True))
        width = len(gold[0])
        found = [
            list(row) for row in zip(*[columns.get(at, [""] * len(gold)) for at in range(1, width + 1)], strict=False)
        ]
        assert (found == gold) is (name not in odd), name
    assert len(files) == 140


@needs_kreuzberg
@pytest.mark.skipif(not DOCUMENTS.is_dir(), reason="../shared/data is not laid here")
def test_real_workbooks() -> None:
    cups = read_tables(".xlsx", (DOCUMENTS / "xlsx/stanley-cups.xlsx").read_bytes())
    assert [(table.sheet, table.rows, list(table.columns[2])) for table in cups] == [
        ("Stanley Cups", (3, 5), ["1", "2", "13"]),
        ("Stanley Cups Since 67", (3, 5), ["1", "2", "0"]),
    ]
    (gap,) = read_tables(".xlsx", (DOCUMENTS / "xlsx/table_empty_rows_and_columns.xlsx").read_bytes())
    assert (gap.places, gap.rows) == ([2, 3], (5, 5))
    with pytest.raises(ParseError, match="protected by a password"):
        read_tables(".xlsx", (DOCUMENTS / "nasty/password_protected.xlsx").read_bytes())
