"""Defog's questions with their gold queries and gold rows, and the tool over a database of theirs."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

from graphrag_agent.retrieval.scope import Scope
from graphrag_agent.tools._database_access import DatabaseConfig
from graphrag_agent.tools._databases import Databases
from graphrag_agent.tools.database_query import build_database_query

DEFOG = Path(__file__).parents[2] / "shared" / "data" / "sql" / "defog"


class GoldQuery(NamedTuple):
    """An accepted query, and what it gives on Defog's database."""

    question: str
    """Its id."""
    sql: str
    columns: list[str]
    rows: list[list[Any]]
    """At most 200 of them."""
    row_count: int
    is_date_dependent: bool
    """The rows were right on one day only."""


def gold_queries() -> dict[str, list[GoldQuery]]:
    """Database -> all its gold queries; nothing where the questions are not beside this checkout."""
    found: dict[str, list[GoldQuery]] = {}
    for line in (DEFOG / "questions_gen_sqlite.jsonl").read_text().splitlines() if DEFOG.is_dir() else ():
        question = json.loads(line)
        found.setdefault(question["db"], []).extend(
            GoldQuery(question["id"], **item, is_date_dependent=question["date_dependent"]) for item in question["gold"]
        )
    return found


def asking(name: str, file: Path) -> Callable[[str], Awaitable[str]]:
    """What the tool tells the model for a query on the SQLite file, for a user who may see all its tables."""
    access = [{"tenants": ["acme"], "tables": "*"}]
    given = DatabaseConfig.model_validate({"url": f"sqlite:///{file}", "description": name, "access": access})
    spec = build_database_query(Databases({name: given}))

    async def ask(sql: str) -> str:
        assert spec.direct is not None
        text, _ = await spec.direct(scope=Scope("acme"), database=name, sql=sql)
        return str(text)

    return ask


def table_lines(text: str) -> list[str]:
    """The lines of the table that a text holds: the names of the columns, a rule, the rows."""
    return [line for line in text.splitlines() if line.startswith("| ")]
