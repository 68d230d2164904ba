import json
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
