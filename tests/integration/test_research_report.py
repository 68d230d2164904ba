"""A research turn from question to report: documents, a table, a database and a computation, each cited."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import BaseMessage

from graphrag_agent import KnowledgeBase, RagAgent
from graphrag_agent.conversation.answer import Answer
from graphrag_agent.events import ToolEnd, ToolStart
from graphrag_agent.settings import Settings, load_settings
from graphrag_agent.testing import ScriptedChatModel, call

for needed in ("duckdb", "sqlalchemy", "sqlglot", "pydantic_monty"):
    pytest.importorskip(needed, reason="needs the extra tools")

ROOT = Path(__file__).parents[2]
QUESTION = (
    "How much longer is the warranty of the Weir G4 than that of the Brook S2, what do one of each cost together, and "
    "how many were sold in the second quarter?"
)
SALES = [("Weir G4", 1, 11), ("Weir G4", 2, 17), ("Brook S2", 2, 24), ("Brook S2", 3, 5)]
PRICES_SQL = "SELECT sum(price_eur) AS total FROM price_list WHERE sku IN ('WEIR-G4/EU', 'BRK-S2/A')"
SALES_SQL = "SELECT sum(pieces) AS pieces_sold FROM sales WHERE quarter = 2"
MONTHS = 'print("The difference of the warranties is", 36 - 24, "months.")'
CRITICISM = "- missing: returns are not mentioned"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    with closing(sqlite3.connect(tmp_path / "shop.sqlite")) as made, made:
        made.execute("CREATE TABLE sales (product TEXT, quarter INTEGER, pieces INTEGER)")
        made.executemany("INSERT INTO sales VALUES (?, ?, ?)", SALES)
    rule = {"tenants": ["*"], "tables": {"sales": "*"}}
    shop = {"url": "sqlite:///shop.sqlite", "description": "Sales by quarter", "access": [rule]}
    (tmp_path / "databases.json").write_text(json.dumps({"shop": shop}))
    return load_settings(databases=str(tmp_path / "databases.json"))


def researcher(messages: list[BaseMessage], tools: tuple[str, ...]) -> Any:
    """Plans and asks at once, computes, has it criticised once, writes."""
    results = [message for message in messages if message.type == "tool"]
    if not tools:
        return CRITICISM
    if "research_question" not in tools:
        return sub_question(results)
    if not results:
        return [
            call("research_question", question="How long are the warranties of the Weir G4 and the Brook S2?"),
            call("tabular_analysis", sql=PRICES_SQL),
            call("database_query", database="shop", sql=SALES_SQL),
        ]
    if len(results) == 3:
        return call("run_python", code=MONTHS)
    if len(results) == 4:
        return call("critique", question=QUESTION, draft="12 months, 1,940 euros, 41 pieces")
    assert CRITICISM.removeprefix("- missing: ") in results[4].text
    return report([ids_in(result.text) for result in results])


def sub_question(results: list[BaseMessage]) -> Any:
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

One of each costs 1,940 euros together [{prices}].

## Sales

In the second quarter 41 pieces were sold [{sales}].

## Not found

Nothing was found on returns."""


def ids_in(text: str) -> list[str]:
    return re.findall(r'<evidence id="(\w+)"', text)


def agent(settings: Settings) -> tuple[RagAgent, ScriptedChatModel]:
    knowledge = KnowledgeBase.open(":memory:", embedder="none")
    knowledge.ingest(ROOT / "examples")
    model = ScriptedChatModel(*[researcher] * 20)
    return RagAgent(model=model, knowledge=knowledge, mode="research", settings=settings), model


async def asked(settings: Settings) -> Answer:
    return await agent(settings)[0].aask(QUESTION)


async def test_a_report_has_sections_and_cites_documents_table_database_and_computation(settings: Settings):
    answer = await asked(settings)
    assert re.findall(r"^## (.*)$", answer.text, re.MULTILINE) == ["Warranty", "Prices", "Sales", "Not found"]
    origins = {citation.source.rpartition("/")[2] for citation in answer.citations}
    assert origins == {"service-and-warranty-terms.pdf", "price-list.csv!A2:C15", "database shop: sales", "computed"}
    assert answer.outcome["ending"] == "answered"
    assert answer.outcome["warnings"] == []


async def test_figures_were_computed_and_stand_in_no_source(settings: Settings):
    answer = await asked(settings)
    texts = {citation.source.rpartition("/")[2].partition("!")[0]: citation.text for citation in answer.citations}
    assert "1940" in texts["price-list.csv"]
    assert "41" in texts["database shop: sales"]
    assert "The difference of the warranties is 12 months." in texts["computed"]
    raw = (ROOT / "examples" / "price-list.csv").read_text() + str(SALES)
    assert "1940" not in raw.replace(",", "")
    assert "41" not in re.findall(r"\d+", str(SALES))


async def test_the_check_finds_the_computed_figures_in_the_results(settings: Settings):
    answer = await asked(settings)
    computed = [citation.support for citation in answer.citations if not citation.document_id]
    assert computed == ["supported"] * 3


async def test_parts_run_side_by_side_and_criticism_comes_once(settings: Settings):
    events = [event async for event in agent(settings)[0].astream(QUESTION)]
    started = [event for event in events if isinstance(event, ToolStart)]
    first_end = next(at for at, event in enumerate(events) if isinstance(event, ToolEnd))
    at_once = [event.name for event in events[:first_end] if isinstance(event, ToolStart) and not event.parent]
    assert sorted(at_once) == ["database_query", "research_question", "tabular_analysis"]
    assert [event.name for event in started].count("critique") == 1
    assert [event.name for event in started if event.parent] == ["knowledge_search", "knowledge_search"]
