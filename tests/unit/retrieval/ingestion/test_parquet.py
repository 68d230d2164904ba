"""Parquet files are found by their columns and first rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphrag_agent.errors import ParseError
from graphrag_agent.retrieval.ingestion.parsing import parquet
from graphrag_agent.retrieval.ingestion.parsing.parquet import parse_parquet, read_parquet_rows

duckdb = pytest.importorskip("duckdb", reason="the extra tools is not installed")


def written(path: Path, query: str) -> bytes:
    duckdb.sql(query).write_parquet(str(path / "made.parquet"))
    return (path / "made.parquet").read_bytes()


def test_the_text_is_its_columns_and_first_rows(tmp_path: Path) -> None:
    data = written(
        tmp_path, "SELECT 'a' || g AS \"Name\\n of it\", g AS n FROM range(250) AS r(g)".replace("\\n", "\n")
    )
    parsed = parse_parquet(data, "Made")
    lines = parsed.text.split("\n")
    assert lines[:2] == ["250 rows. Columns: Name of it (VARCHAR), n (BIGINT)", "Name of it: a0; n: 0"]
    assert (len(lines), lines[-1]) == (101, "Name of it: a99; n: 99")
    assert [(section.kind, parsed.text[section.start :].split("\n")[0]) for section in parsed.sections] == [
        ("prose", lines[0]),
        ("table", lines[1]),
    ]
    assert (parsed.title, parsed.source_type) == ("Made", "parquet")


def test_empty_cells_and_rows_are_left_out(tmp_path: Path) -> None:
    data = written(tmp_path, "SELECT NULL::VARCHAR AS a, NULL::INT AS b")
    parsed = parse_parquet(data, "Made")
    assert (parsed.text, len(parsed.sections)) == ("1 rows. Columns: a (VARCHAR), b (INTEGER)", 1)


def test_columns_beyond_the_limit_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "SHOWN_COLUMNS", 2)
    data = written(tmp_path, "SELECT 1 AS a, 2 AS b, 3 AS c, 4 AS d")
    assert parse_parquet(data, "Made").text == "1 rows. Columns: a (INTEGER), b (INTEGER) and 2 more\na: 1; b: 2"


def test_rows_are_counted_even_where_none_is_read(tmp_path: Path) -> None:
    data = written(tmp_path, "SELECT 1 AS a, 2 AS b, 3 AS c, 4 AS d")
    found = read_parquet_rows(data, max_rows=0, max_columns=9)
    assert (found.row_count, found.rows) == (1, [])


def test_a_file_of_too_many_cells_is_refused_before_its_rows_are_read(tmp_path: Path) -> None:
    data = written(tmp_path, "SELECT g AS a, g AS b FROM range(50) AS r(g)")
    assert len(read_parquet_rows(data, max_columns=2, max_cells=100).rows) == 50
    assert len(read_parquet_rows(data, max_columns=1, max_cells=50).rows) == 50
    with pytest.raises(ParseError, match="has more than 99 cells; split it into smaller files"):
        read_parquet_rows(data, max_columns=2, max_cells=99)


def test_too_little_memory_is_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = written(tmp_path, "SELECT g AS a, repeat('x', 100) || g AS b FROM range(100000) AS r(g)")
    monkeypatch.setattr(parquet, "_MEMORY", "1MB")
    with pytest.raises(ParseError, match=r"^needs more than 1MB of memory; split it into smaller files$"):
        read_parquet_rows(data, max_columns=2)


def test_where_files_can_not_be_in_memory_they_are_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = written(tmp_path, "SELECT 1 AS a")
    monkeypatch.delattr(parquet.os, "memfd_create", raising=False)
    assert parse_parquet(data, "Made").text.endswith("a: 1")


@pytest.mark.parametrize("data", [b"", b"PAR1", b"PAR1" + b"\xff" * 200 + b"PAR1"], ids=["empty", "short", "damaged"])
def test_what_is_no_parquet_is_refused(data: bytes) -> None:
    with pytest.raises(ParseError, match="damaged or not a parquet file") as refused:
        parse_parquet(data, "Made")
    assert not any(word in str(refused.value) for word in ("/proc", "read_parquet", "\n"))
