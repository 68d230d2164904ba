import json
import time
from pathlib import Path

import pytest

from graphrag_agent.retrieval.ingestion.parsing.table import parse_table, read_rows

SPECTRUM = Path(__file__).parents[4] / "../shared/data/documents/csv_spectrum"


def lines(text: str) -> list[str]:
    return parse_table(text.encode(), "Stem").text.split("\n")


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_a_row_becomes_one_line_of_named_cells(delimiter: str) -> None:
    rows = [["SKU", "Name", "Price"], ["K-1", "Kite", "10.50"], ["K-2", "", "7"]]
    text = "\r\n".join(delimiter.join(row) for row in rows)
    assert lines(text) == ["SKU: K-1; Name: Kite; Price: 10.50", "SKU: K-2; Price: 7"]


def test_a_cell_may_be_as_long_as_the_file() -> None:
    cell = "word " * 40_000
    assert lines(f'id,said\n1,"{cell}"\n2,short\n') == [f"id: 1; said: {cell.strip()}", "id: 2; said: short"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('a,b\n"x\ny",2\n', ["a: x y; b: 2"]),
        ("a,b\n1,2,3\n4\n\n", ["a: 1; b: 2; column 3: 3", "a: 4"]),
        ("1,2\n3,4\n", ["column 1: 1; column 2: 2", "column 1: 3; column 2: 4"]),
        ("Sales 2024,,\nteam,2023,2024\nred,5,6\n", ["Sales 2024", "team: red; 2023: 5; 2024: 6"]),
        (",name\n1,x\n", ["column 1: 1; name: x"]),
        ("n,n\n1,2\n", ["n: 1; n (2): 2"]),
        ("Industry\nFarming\nMining\n", ["Industry: Farming", "Industry: Mining"]),
        ("sep=|\na|b\n1,5|2\n", ["a: 1,5; b: 2"]),
        ("one row,only\n", ["column 1: one row; column 2: only"]),
        ("", [""]),
    ],
    ids=[
        "cell-newline",
        "ragged",
        "no-header",
        "caption",
        "blank-header-cell",
        "twice-named",
        "single",
        "sep-line",
        "lone-row",
        "empty",
    ],
)
def test_odd_tables_keep_every_cell(text: str, expected: list[str]) -> None:
    assert lines(text) == expected


@pytest.mark.parametrize(
    ("text", "first_row"),
    [
        ("name,,city\na,x,Rome\nb,y,Oslo\n", "name: a; column 2: x; city: Rome"),
        ("name,price,\na,1,new\nb,2,old\n", "name: a; price: 1; column 3: new"),
        ("id,name,,,note\nK,a,b,c,d\nL,e,f,g,h\n", "id: K; name: a; column 3: b; column 4: c; note: d"),
        ("land,1/22/20,1/23/20\nItaly,0,2\nPeru,1,3\n", "land: Italy; 1/22/20: 0; 1/23/20: 2"),
        ("item,2024-01,2024-02\nbolts,5,6\n", "item: bolts; 2024-01: 5; 2024-02: 6"),
    ],
    ids=["gap", "gap-at-the-end", "gaps", "days", "months"],
)
def test_a_header_may_have_gaps_and_days(text: str, first_row: str) -> None:
    assert lines(text)[0] == first_row


@pytest.mark.parametrize(
    ("text", "first_row"),
    [
        ("land,2023,,2024,\n,Q1,Q2,Q1,Q2\nPeru,1,2,3,4\n", "column 1: Peru; Q1: 1; Q2: 2; Q1 (2): 3; Q2 (2): 4"),
        ("who,what,,all\na,b,c,d\nx,1,2,3\n", "a: x; b: 1; c: 2; d: 3"),
        ("Sales of,,2024\nname,land,total\nx,Peru,5\n", "name: x; land: Peru; total: 5"),
        ("Source:,us\nname,land,city\nx,Peru,Lima\n", "name: x; land: Peru; city: Lima"),
    ],
    ids=["groups", "groups-of-one", "caption", "short-caption"],
)
def test_what_stands_above_the_header_is_none(text: str, first_row: str) -> None:
    assert lines(text)[1] == first_row


def test_rows_that_begin_with_days_are_no_header() -> None:
    assert lines("2024-05-01,open\n2024-05-02,shut\n")[0] == "column 1: 2024-05-01; column 2: open"


@pytest.mark.skipif(not SPECTRUM.is_dir(), reason="../shared/data is not laid here")
@pytest.mark.parametrize("name", [path.stem for path in sorted(SPECTRUM.glob("*.csv"))] or ["absent"])
def test_csv_spectrum_cells_are_read_as_expected(name: str) -> None:
    rows = json.loads((SPECTRUM.parent / "csv_spectrum_expected" / f"{name}.json").read_text())
    expected = ["; ".join(f"{key}: {' '.join(cell.split())}" for key, cell in row.items() if cell) for row in rows]
    assert parse_table((SPECTRUM / f"{name}.csv").read_bytes(), name).text.split("\n") == expected


@pytest.mark.parametrize(
    ("text", "cells"),
    [
        ('"a","b"\n"say \\"x, y\\" twice","1"\n', ['say "x, y" twice', "1"]),
        ('"a","b"\n"C:\\dir\\","1"\n', ["C:\\dir\\", "1"]),
        ('"a","b"\n"say ""x, y""","1"\n', ['say "x, y"', "1"]),
    ],
    ids=["backslash", "a path", "doubled"],
)
def test_quotes_in_cells_are_read_as_they_were_meant(text: str, cells: list[str]) -> None:
    assert list(read_rows(text).rows)[1] == cells


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        (
            'name\tyear\n"Heroes\t1977\nLow\t1977\n5" disc\t1999\n',
            [['"Heroes', "1977"], ["Low", "1977"], ['5" disc', "1999"]],
        ),
        ('a,b\r\n1,"x\r\n2,y\r\n3,z\r\n', [["1", '"x'], ["2", "y"], ["3", "z"]]),
        ('a,b\n"x,1\n"y,2\n"p\nq",3\n', [['"x', "1"], ['"y', "2"], ["p\nq", "3"]]),
        ('a,b\n1,"say ""x\ny"""\n"Smith, John" Jr., 2\n', [["1", 'say "x\ny"'], ["Smith, John Jr.", "2"]]),
    ],
    ids=["closed-elsewhere", "never-closed", "beside-closed-ones", "no-lone-quote"],
)
def test_a_quote_that_begins_a_cell_and_ends_none_swallows_no_row(text: str, rows: list[list[str]]) -> None:
    assert list(read_rows(text).rows)[1:] == rows


def test_lone_quotes_are_found_in_linear_time() -> None:
    started = time.process_time()
    assert sum(1 for _ in read_rows('"a,"",b\n' * 300_000).rows) == 300_000
    assert time.process_time() - started < 10
