"""Every gold query of Defog's questions through the tool, on Defog's own rows: what is shown are the gold rows.

The databases are the dumps of defog-ai/defog-data (Apache-2.0) as of 856295d8f0aa, whose rows not all versions have,
built into SQLite as `<database>.sqlite`, with dates that a dump counts from today counted from 2026-11-29. They are
looked for in the folder that GRAPHRAG_DEFOG_DATABASES names, else in ../shared/data/sql/defog/databases.
"""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest

from graphrag_agent.tools.database_query import MAX_ROWS
from tests.defog import DEFOG, GoldQuery, asking, gold_queries, table_lines

# read here, as each test runs without the variables of whoever runs it
DATABASES = Path(os.environ.get("GRAPHRAG_DEFOG_DATABASES") or DEFOG / "databases")
QUERIES = gold_queries()

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not QUERIES, reason="Defog's questions are not beside this checkout (../shared/data)"),
    pytest.mark.skipif(not DATABASES.is_dir(), reason=f"Defog's databases are not in {DATABASES}"),
]


def cells(line: str) -> list[str]:
    return line.removeprefix("| ").removesuffix(" |").split(" | ")


def is_shown_as(value: object, cell: str) -> bool:
    if isinstance(value, float):
        try:
            return math.isclose(float(cell), value, rel_tol=0, abs_tol=1e-6)
        except ValueError:
            return False
    return cell == ("NULL" if value is None else str(value))


def without_gold(shown: list[list[str]], gold: list[list[object]]) -> tuple[list[list[str]], list[list[object]]]:
    """The shown rows that are not gold, and the gold rows that are not shown; each row counts once."""
    strange, missing = [], list(gold)
    for row in shown:
        same = (
            at for at, values in enumerate(missing) if len(values) == len(row) and all(map(is_shown_as, values, row))
        )
        if (at := next(same, None)) is None:
            strange.append(row)
        else:
            del missing[at]
    return strange, missing


def faults(query: GoldQuery, text: str) -> list[str]:
    """What is wrong in what the tool tells; of a result that is cut, the rows shown have to be gold."""
    names, _, *lines = table_lines(text)
    shown = [cells(line) for line in lines]
    strange, missing = without_gold(shown, query.rows)
    found = [f"not gold: {row}" for row in strange]
    if cells(names) != query.columns:
        found.append(f"columns {names}, not {query.columns}")
    if "there are more" in text:
        if query.row_count <= MAX_ROWS:
            found.append(f"cut, though it has {query.row_count} rows")
    elif missing or len(shown) != query.row_count:
        found.append(f"{len(shown)} of {query.row_count} rows; missing: {missing}")
    return found


@pytest.mark.parametrize("database", sorted(QUERIES) or ["none"])
async def test_each_gold_query_shows_the_gold_rows(database: str) -> None:
    file = DATABASES / f"{database}.sqlite"
    assert file.is_file(), f"{file} is missing"
    ask = asking(database, file)
    queries = [query for query in QUERIES[database] if not query.is_date_dependent]
    assert queries
    found = {f"{query.question}: {query.sql}": faults(query, await ask(query.sql)) for query in queries}
    assert {sql: wrong for sql, wrong in found.items() if wrong} == {}
