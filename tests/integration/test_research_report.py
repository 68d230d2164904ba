"""A research turn from question to report: documents, a table, a database and a computation, each cited.

The tools at the end of the file stand in for the package's own; `sources` gives the graph its tools and the plan their
arguments, so that others can take their place.
"""

from __future__ import annotations

import csv
import re
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from langchain_core.messages import BaseMessage
from langchain_core.tools import StructuredTool

from graphrag_agent import KnowledgeBase, RagAgent
from graphrag_agent.events import ToolEnd, ToolStart
from graphrag_agent.testing import ScriptedChatModel, call
from graphrag_agent.tools.evidence_message import render_evidence
from graphrag_agent.tools.made_evidence import made_evidence
from graphrag_agent.tools.spec import ToolSpec

ROOT = Path(__file__).parents[2]
QUESTION = (
    "How much longer is the warranty of the Weir G4 than that of the Brook S2, what do one of each cost together, and "
    "how many were sold in the second quarter?"
)
SALES = [("Weir G4", 1, 11), ("Weir G4", 2, 17), ("Brook S2", 2, 24), ("Brook S2", 3, 5)]
PRICES_SQL = "SELECT sum(price) FROM prices WHERE sku IN ('WEIR-G4/EU', 'BRK-S2/A')"
SALES_SQL = "SELECT sum(pieces) FROM sales WHERE quarter = 2"
MONTHS = "36 - 24"
TOTAL = "1940.0"
"""Of 690 and 1,250 euros, the prices of the standard probe and of the gateway for Europe."""


class Sources(NamedTuple):
    """The tools of the turn, and its calls of them by the part of the question."""

    tools: list[ToolSpec]
    prices: dict[str, Any]
    sales: dict[str, Any]
    months: dict[str, Any]
    criticism: dict[str, Any]


@pytest.fixture
def sources(tmp_path: Path) -> Sources:
    database = tmp_path / "sales.sqlite"
    with sqlite3.connect(database) as made:
        made.execute("CREATE TABLE sales (product TEXT, quarter INTEGER, pieces INTEGER)")
        made.executemany("INSERT INTO sales VALUES (?, ?, ?)", SALES)
    return Sources(
        [tabular_analysis(ROOT / "examples" / "price-list.csv"), database_query(database), run_python(), critique()],
        prices=call("tabular_analysis", sql=PRICES_SQL),  # type: ignore[arg-type]
        sales=call("database_query", sql=SALES_SQL),  # type: ignore[arg-type]
        months=call("run_python", code=MONTHS),  # type: ignore[arg-type]
        criticism=call("critique", draft="12 months, ... in all"),  # type: ignore[arg-type]
    )


def researcher(sources: Sources) -> Callable[[list[BaseMessage], tuple[str, ...]], Any]:
    """Plans and asks at once, computes, has it criticised once, writes."""

    def play(messages: list[BaseMessage], tools: tuple[str, ...]) -> Any:
        results = [message for message in messages if message.type == "tool"]
        if "research_question" not in tools:
            return sub_question(messages, results)
        if not results:
            asked = call("research_question", question="How long are the warranties of the Weir G4 and the Brook S2?")
            return [asked, sources.prices, sources.sales]
        if len(results) == 3:
            return sources.months
        if len(results) == 4:
            return sources.criticism
        return report([ids_in(result.text) for result in results])

    return play


def sub_question(messages: list[BaseMessage], results: list[BaseMessage]) -> Any:
    queries = ("warranty of the Weir G4 gateway", "warranty of the Brook S2 probe")
    if not results:
        return [call("knowledge_search", query=query, source_type="pdf") for query in queries]
    return f"The Weir G4 has 36 months of warranty, the Brook S2 24 months [{ids_in(results[0].text)[0]}]."


def report(ids: list[list[str]]) -> str:
    (warranty, *_), (prices,), (sales,), (months,), _ = ids
    return f"""The warranty of the Weir G4 is 12 months longer [{months}], and 41 pieces were sold [{sales}].

## Warranty

The Weir G4 has a warranty of 36 months, the Brook S2 one of 24 months [{warranty}]. That is 12 months more [{months}].

## Prices

One of each costs {TOTAL} euros together [{prices}].

## Sales

In the second quarter 41 pieces were sold [{sales}].

## Not found

Nothing was found on returns."""


def ids_in(text: str) -> list[str]:
    return re.findall(r'<evidence id="(\w+)"', text)


def agent(sources: Sources, model: ScriptedChatModel) -> RagAgent:
    knowledge = KnowledgeBase.open(":memory:", embedder="none")
    knowledge.ingest(ROOT / "examples")
    return RagAgent(model=model, knowledge=knowledge, tools=sources.tools, mode="research")


async def test_a_report_has_sections_and_cites_documents_table_and_database(sources: Sources):
    model = ScriptedChatModel(*[researcher(sources)] * 20)
    answer = await agent(sources, model).aask(QUESTION)
    assert re.findall(r"^## (.*)$", answer.text, re.MULTILINE) == ["Warranty", "Prices", "Sales", "Not found"]
    origins = {citation.source.rpartition("/")[2] for citation in answer.citations}
    assert origins == {"service-and-warranty-terms.pdf", "price-list.csv: prices", "sales.sqlite: sales", "python"}
    assert answer.outcome["ending"] == "answered"
    assert answer.outcome["warnings"] == []


async def test_figures_were_computed_and_stand_in_no_source(sources: Sources):
    answer = await agent(sources, ScriptedChatModel(*[researcher(sources)] * 20)).aask(QUESTION)
    texts = {citation.source.rpartition("/")[2]: citation.text for citation in answer.citations}
    assert texts["price-list.csv: prices"] == f"{PRICES_SQL}\n{TOTAL}"
    assert texts["sales.sqlite: sales"] == f"{SALES_SQL}\n41"
    assert texts["python"] == f"{MONTHS}\n12"
    raw = (ROOT / "examples" / "price-list.csv").read_text() + str(SALES)
    assert "1940" not in raw.replace(",", "")
    assert "41" not in re.findall(r"\d+", str(SALES))


async def test_parts_run_side_by_side_and_criticism_comes_once(sources: Sources):
    model = ScriptedChatModel(*[researcher(sources)] * 20)
    events = [event async for event in agent(sources, model).astream(QUESTION)]
    started = [event for event in events if isinstance(event, ToolStart)]
    first_end = next(at for at, event in enumerate(events) if isinstance(event, ToolEnd))
    at_once = [event.name for event in events[:first_end] if isinstance(event, ToolStart) and not event.parent]
    assert sorted(at_once) == ["database_query", "research_question", "tabular_analysis"]
    assert [event.name for event in started].count("critique") == 1
    assert [event.name for event in started if event.parent] == ["knowledge_search", "knowledge_search"]


def _spec(function: Callable[..., Any], family: str) -> ToolSpec:
    return ToolSpec(StructuredTool.from_function(function, response_format="content_and_artifact"), family=family)


def _computed(key: str, source: str, text: str) -> tuple[str, dict[str, Any]]:
    return render_evidence([made_evidence(key, title=source, source=source, text=text)])


def prices_of(table: Path) -> list[tuple[str, float]]:
    with table.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines, delimiter=";"))
    return [(row["SKU"], float(row["Price EUR"].replace(",", ""))) for row in rows]


def tabular_analysis(table: Path) -> ToolSpec:
    def tabular_analysis(sql: str) -> tuple[str, dict[str, Any]]:
        """SQL over the table prices(sku, price)."""
        with sqlite3.connect(":memory:") as database:
            database.execute("CREATE TABLE prices (sku TEXT, price REAL)")
            database.executemany("INSERT INTO prices VALUES (?, ?)", prices_of(table))
            found = database.execute(sql).fetchall()
        return _computed(f"table:{sql}", f"{table.name}: prices", f"{sql}\n{found[0][0]}")

    return _spec(tabular_analysis, "table")


def database_query(place: Path) -> ToolSpec:
    def database_query(sql: str) -> tuple[str, dict[str, Any]]:
        """SQL over the table sales(product, quarter, pieces)."""
        with sqlite3.connect(place) as database:
            found = database.execute(sql).fetchall()
        return _computed(f"sql:{sql}", f"{place.name}: sales", f"{sql}\n{found[0][0]}")

    return _spec(database_query, "database")


def run_python() -> ToolSpec:
    def run_python(code: str) -> tuple[str, dict[str, Any]]:
        """The value of an arithmetic expression."""
        first, operator, second = code.split()
        assert operator == "-"
        return _computed(f"python:{code}", "python", f"{code}\n{int(first) - int(second)}")

    return _spec(run_python, "python")


def critique() -> ToolSpec:
    def critique(draft: str) -> tuple[str, dict[str, Any]]:
        """What is wrong with a draft."""
        return "Nothing is missing.", {"usage": {"input_tokens": 40, "output_tokens": 4}}

    return _spec(critique, "critique")
