"""`langgraph dev` serves the graph, offline: the smoke test of Studio users."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph_sdk import get_client

from graphrag_agent import KnowledgeBase
from tests.dev_server import dev_server, new_home

EAGER_GRAPH = """
from tests.integration.test_eager import SlowKnowledge, build

graph = build(SlowKnowledge())
"""
pytest.importorskip("langgraph_api", reason="needs the extra studio")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """Base URL and log of a dev server over a folder with one document."""
    home = new_home(tmp_path_factory.mktemp("studio"), "langgraph.json")
    (home / "graphs" / "eager.py").write_text(EAGER_GRAPH)
    config = json.loads((home / "langgraph.json").read_text())
    config["graphs"]["eager"] = "./graphs/eager.py:graph"
    (home / "langgraph.json").write_text(json.dumps(config))
    (home / "leave.md").write_text("# Leave\n\nSick leave lasts ten days a year.\n")
    with KnowledgeBase.open(home / ".graphrag", embedder="none") as knowledge:
        knowledge.ingest(home / "leave.md")
    with dev_server(home, "langgraph.json") as url:
        yield url, home / "server.log"


async def _turn(url: str) -> tuple[list[str], set[str], dict[str, Any], dict[str, Any]]:
    async with get_client(url=url) as client:
        thread = await client.threads.create()
        kinds, nodes = [], set()
        async for part in client.runs.stream(
            thread["thread_id"],
            "rag",
            input={"messages": [{"role": "user", "content": "How many days does sick leave last?"}]},
            context={"max_rounds": 3},
            stream_mode=["updates", "messages-tuple", "custom", "values"],
        ):
            kinds.append(part.event)
            if part.event == "updates":
                nodes |= set(part.data)
        state = await client.threads.get_state(thread["thread_id"])
        assistants = await client.assistants.search()
        schemas = await client.assistants.get_schemas(assistants[0]["assistant_id"])
    return kinds, nodes, state["values"], schemas


@pytest.mark.slow
def test_a_thread_runs_and_keeps_question_and_answer_only(server: tuple[str, Path]):
    url, log = server
    kinds, nodes, values, schemas = asyncio.run(_turn(url))
    assert "error" not in kinds, log.read_text()
    assert {"messages", "custom", "updates", "values"} <= set(kinds)
    assert nodes == {"start_turn", "model", "dedupe_guard", "tool_dispatch", "commit_answer"}
    assert [message["type"] for message in values["messages"]] == ["human", "ai"]
    (block,) = values["messages"][1]["content"]
    assert block["text"].startswith("Sick leave lasts ten days a year. [")
    assert [note["type"] for note in block["annotations"]] == ["citation"]
    assert values["turn"] == []
    assert values["outcome"]["ending"] == "answered"
    assert "max_tool_calls" in schemas["context_schema"]["properties"]
    assert list(schemas["input_schema"]["properties"]) == ["messages"]
    assert list(schemas["output_schema"]["properties"]) == ["messages", "outcome"]
    assert "BlockingError" not in log.read_text()


async def _order(url: str) -> list[str]:
    """Names of what arrives, in order: the node of an update, or the custom event."""
    async with get_client(url=url) as client:
        thread = await client.threads.create()
        return [
            str(part.data.get("event") or next(iter(part.data)))
            async for part in client.runs.stream(
                thread["thread_id"],
                "eager",
                input={"messages": [{"role": "user", "content": "How long is sick leave?"}]},
                stream_mode=["updates", "custom"],
            )
            if part.event in ("updates", "custom")
        ]


@pytest.mark.slow
def test_a_search_is_done_before_the_message_that_asks_for_it(server: tuple[str, Path]):
    url, log = server
    order = asyncio.run(_order(url))
    assert order.index("tool_end") < order.index("model"), log.read_text()
    assert order[-1] == "commit_answer"
