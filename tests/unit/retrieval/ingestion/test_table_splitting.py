"""Several tables on one sheet: each has its own header; groups of one table stay together."""

from __future__ import annotations

import time
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_agent.retrieval.ingestion.parsing.table import parse_table
from graphrag_agent.retrieval.ingestion.parsing.table_splitting import split_tables
from graphrag_agent.tools._table_reading import read_tables

VODAFONE = Path(__file__).parents[4] / "../shared/data/documents/xlsx/vodafone.xlsx"

SALES = "Region,Q1,Q2\nNorth,10,20\nSouth,11,21\n"


def lines(text: str) -> list[str]:
    return parse_table(text.encode(), "Stem").text.split("\n")


def last_line(second: str) -> str:
    return lines(f"{SALES}\n{second}")[-1]


@pytest.mark.parametrize(
    ("second", "row"),
    [
        ("Product,Units,Price\nBolt,5,0.3\n", "Product: Bolt; Units: 5; Price: 0.3"),
        ("Costs\nProduct,Units,Price\nBolt,5,0.3\n", "Product: Bolt; Units: 5; Price: 0.3"),
        ("Costs\n\nProduct,Units,Price\nBolt,5,0.3\n", "Product: Bolt; Units: 5; Price: 0.3"),
        ("Product,Maker,Price,Stock\nBolt,Acme,0.3,9\n", "Product: Bolt; Maker: Acme; Price: 0.3; Stock: 9"),
        ("Region,Q3\nNorth,30\n", "Region: North; Q3: 30"),
        (",,,Product,Units,Price\n,,,Bolt,5,0.3\n", "Product: Bolt; Units: 5; Price: 0.3"),
    ],
    ids=["other-names", "caption", "caption-apart", "other-kinds", "a-name-again", "elsewhere"],
)
def test_a_header_behind_a_blank_row_begins_a_table(second: str, row: str) -> None:
    assert last_line(second) == row
    assert lines(f"{SALES}\n{second}")[:2] == ["Region: North; Q1: 10; Q2: 20", "Region: South; Q1: 11; Q2: 21"]


@pytest.mark.parametrize(
    ("second", "row"),
    [
        ("East,12,22\n", "Region: East; Q1: 12; Q2: 22"),
        ("Total,21,41\n", "Region: Total; Q1: 21; Q2: 41"),
        ("Source: the ministry\n", "Region: Source: the ministry"),
        ("Europe\nEast,12,22\nWest,13,23\n", "Region: West; Q1: 13; Q2: 23"),
        ("East,unknown,22\nWest,13,23\n", "Region: West; Q1: 13; Q2: 23"),
        ("East,n/a,n/a\nWest,13,23\n", "Region: West; Q1: 13; Q2: 23"),
        ("Color,red\nDepth,3\n", "Region: Depth; Q1: 3"),
        ("East,low,high\nWest,high,low\n", "Region: West; Q1: high; Q2: low"),
        ("East,n/a,-\nWest,13,23\n", "Region: West; Q1: 13; Q2: 23"),
        ("Ost,k. A.,entfällt\nWest,13,23\n", "Region: West; Q1: 13; Q2: 23"),
        ("Восток,н/д,нет данных\nWest,13,23\n", "Region: West; Q1: 13; Q2: 23"),
        ("东,无,未知\nWest,13,23\n", "Region: West; Q1: 13; Q2: 23"),
        ("East,>100,12*\nWest,13,23\n", "Region: West; Q1: 13; Q2: 23"),
        ("East,12 t,−5\nWest,13,23\n", "Region: West; Q1: 13; Q2: 23"),
    ],
    ids=[
        "group",
        "total",
        "source",
        "named-group",
        "a-gap",
        "no-numbers",
        "form",
        "words-only",
        "marks",
        "de",
        "ru",
        "zh",
        "about",
        "units",
    ],
)
def test_rows_behind_a_blank_row_belong_to_the_table_where_no_header_is_sure(second: str, row: str) -> None:
    assert last_line(second) == row


@pytest.mark.parametrize(
    ("table", "row"),
    [
        ("Task,Owner,Hours,Note\nA,Ann,5,x\nB,Bo,6,\n\nC,Cid,later\nD,Di,5\n", "Task: D; Owner: Di; Hours: 5"),
        (
            "Name,Role,Since,Pay\nAnn,dev,2001,5\nBo,ops,2002,6\n\nExternals\nCid,dev,contract,unpaid\nDi,ops,2004,7\n",
            "Name: Di; Role: ops; Since: 2004; Pay: 7",
        ),
        ("Name,Role,Room\nAnn,dev,A1\n\nGuests\nCid,cook,B2\nDi,dev,7\n", "Name: Di; Role: dev; Room: 7"),
    ],
    ids=["empty-column", "known-value", "one-number"],
)
def test_a_first_row_of_words_is_no_header_by_chance(table: str, row: str) -> None:
    assert lines(table)[-1] == row


@pytest.mark.parametrize("caption", ["", "Sales\n", "Sales\n\n"])
def test_a_header_that_comes_again_on_each_page_is_no_row_and_begins_no_table(caption: str) -> None:
    pages = "\n".join(f"{caption}Region,Q1,Q2\nNorth {page},10,20\n" for page in range(3))
    rows = [f"Region: North {page}; Q1: 10; Q2: 20" for page in range(3)]
    assert [line for line in lines(pages) if line != "Sales"] == rows
    (table,) = read_tables(".csv", pages.encode())
    assert list(table.columns)[1] == ["10", "10", "10"]
    assert table.rows == (2 + caption.count("\n"), pages.count("\n"))


def test_words_left_of_a_table_are_kept() -> None:
    words = "Machine learning\n,Libraries\n"
    assert lines(f"{words}\n,,,Year,Ducks,Geese\n,,,2001,5,6\n") == [
        "column 1: Machine learning",
        "column 2: Libraries",
        "Year: 2001; Ducks: 5; Geese: 6",
    ]
    assert lines("Birds\n\n,,,Year,Ducks,Geese\n,,,2001,5,6\n") == ["Birds", "Year: 2001; Ducks: 5; Geese: 6"]


def test_two_captions_above_one_row_are_no_header() -> None:
    assert lines("Costs\n\nin EUR\nProduct,Units,Price\nBolt,5,0.3\n")[-1] == "Product: Bolt; Units: 5; Price: 0.3"


def test_a_caption_above_the_first_header_is_no_table() -> None:
    assert lines(f"Sales\n\n{SALES}")[:2] == ["Sales", "Region: North; Q1: 10; Q2: 20"]


def test_a_form_is_no_table_after_another() -> None:
    assert lines("Weight,5\nHeight,7\n\nColor,red\nDepth,3\n")[-1] == "column 1: Depth; column 2: 3"


def test_each_table_can_be_queried_and_has_its_own_rows() -> None:
    first, second = read_tables(".csv", f"{SALES}\nCosts\nProduct,Units,Price\nBolt,5,0.3\nNut,6,\n".encode())
    assert (list(first.titles), first.rows, first.notes) == (["Region", "Q1", "Q2"], (2, 3), ())
    assert (list(second.titles), second.rows) == (["Product", "Units", "Price"], (7, 8))
    assert second.notes == ("above the header: Costs",)
    assert list(second.columns) == [["Bolt", "Nut"], ["5", "6"], ["0.3", ""]]


@pytest.mark.skipif(find_spec("kreuzberg") is None, reason="the extra docs is not installed")
@pytest.mark.skipif(not VODAFONE.is_file(), reason="no shared data here")
def test_a_real_sheet_of_three_tables() -> None:
    tables = read_tables(".xlsx", VODAFONE.read_bytes())
    assert [(table.rows, table.notes[0].removeprefix("above the header: ")) for table in tables] == [
        ((5, 9), "Financial performance"),
        ((13, 20), "Operational metrics"),
        ((24, 25), "Other"),
    ]
    assert {tuple(table.titles)[:2] for table in tables} == {("Topic", "Period")}


CELLS = st.sampled_from(["", "a", "b", "Total", "7", "0.5", "2024"])
ROWS = st.lists(st.lists(CELLS, max_size=4), max_size=12)


@given(ROWS)
def test_no_row_is_lost_or_comes_twice(rows: list[list[str]]) -> None:
    said = [row for row in rows if any(row)]
    gaps, count = set[int](), 0
    for row in rows:
        if any(row):
            count += 1
        else:
            gaps.add(count)
    while any(row and not row[-1] for row in said):
        said = [row[:-1] if row and not row[-1] else row for row in said]
    kept = [at for table in split_tables(said, gaps) for part in table for at in part]
    assert kept == sorted(set(kept))
    lost = set(range(len(said))) - set(kept)  # a header and its caption, which come again
    assert all(said[at] in said[:at] for at in lost)


def test_twice_as_many_groups_take_about_twice_the_time() -> None:
    def seconds(groups: int) -> float:
        rows = [["Region", "Q1", "Q2"], *[["North", "10", "20"]] * 150]
        rows += [["East", "low", "high"], ["West", "3", "x"]] * groups
        gaps = set(range(151, len(rows), 2))
        began = time.thread_time()
        split_tables(rows, gaps)
        return time.thread_time() - began

    once, twice = min(seconds(2_000) for _ in range(3)), min(seconds(4_000) for _ in range(3))
    assert twice < 3 * once


def test_groups_of_a_table_that_is_still_small_are_cheap() -> None:
    def seconds(rows: list[list[str]]) -> float:
        began = time.thread_time()
        split_tables(rows, {at for at in range(1, len(rows)) if rows[at - 1][1] != "B"})
        return time.thread_time() - began

    groups = [["A", "B", "C"], *[["1", "2", "3"]] * 3_998]
    many = [row for at in range(20) for row in ([f"A{at}", "B", "C"], *[["1", "2", "3"]] * 199)]
    assert min(seconds(many) for _ in range(3)) < 5 * min(seconds(groups) for _ in range(3))


def test_a_wide_row_does_not_make_short_ones_dear() -> None:
    text = ",".join("a" * 20_000) + "\n" + "1\n" * 20_000
    began = time.thread_time()
    assert len(lines(text)) == 20_000
    assert time.thread_time() - began < 2
