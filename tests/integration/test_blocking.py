"""No node, tool or store blocks the event loop."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from blockbuster import BlockingError
from langchain_core.tools import BaseTool, Tool, tool

from graphrag_agent import KnowledgeBase, RagAgent, ToolSpec, acting_as
from graphrag_agent.identity import Principal, acting_principal
from graphrag_agent.persistence import checkpointers
from graphrag_agent.persistence.checkpointers import open_checkpointer
from graphrag_agent.testing import ScriptedChatModel, call
from tests.hashing_embeddings import HashingEmbeddings


async def test_the_watch_sees_a_blocking_call(watched: None):
    @tool
    async def sleepy(seconds: float) -> str:
        """Sleep."""
        time.sleep(seconds)  # noqa: ASYNC251
        return "slept"

    with ScriptedChatModel(call("sleepy", seconds=0.01), "done") as model:
        await RagAgent(model=model, tools=[ToolSpec(sleepy)]).aask("q")
    assert BlockingError.__name__ in model.requests[1].messages[-1].text


@pytest.mark.parametrize("location", [":memory:", "folder"])
async def test_from_a_folder_of_documents_to_an_answer(watched: None, tmp_path: Path, location: str):
    (tmp_path / "leave.md").write_text("# Leave\n\nSick leave lasts ten days a year.\n")
    place = location if location == ":memory:" else tmp_path / "kb"
    async with await KnowledgeBase.aopen(place, embedder=HashingEmbeddings()) as knowledge:
        report = await knowledge.aingest(tmp_path / "leave.md")
        assert report.failed == ()
        async with open_checkpointer("sqlite", tmp_path / "t.sqlite") as checkpointer:
            agent = RagAgent(model="offline", knowledge=knowledge, checkpointer=checkpointer)
            answer = await agent.aask("How many days does sick leave last?", thread="t")
            assert "ten days" in answer.text
            events = [event.type async for event in agent.astream("And when is it paid?", thread="t")]
            assert events[-1] == "turn_ended"
            assert len(await agent.ahistory("t")) == 4
        (document,) = await knowledge.adocuments()
        assert "Sick leave" in await knowledge.aread(document.id)
        with acting_as(Principal(tenant="other")):
            assert (await knowledge.astats()).documents == 0
        assert await knowledge.adelete(document.id)


async def test_the_driver_of_a_database_is_imported_off_the_event_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    threads = []

    def load(name: str) -> Any:
        threads.append(threading.current_thread())
        return import_module(name)

    monkeypatch.setattr(checkpointers, "import_module", load)
    async with open_checkpointer("sqlite", tmp_path / "t.sqlite"):
        pass
    assert len(threads) == 1
    assert threads[0] is not threading.current_thread()


HANGING = threading.Event()


def hang(query: str) -> str:
    """Hang, as a request without a limit of time does."""
    HANGING.wait(20)
    return f"late {query} for {acting_principal().tenant}"


class HangingTool(BaseTool):
    name: str = "hang"
    description: str = "Hang."

    def _run(self, query: str) -> str:
        return hang(query)


SYNC_TOOLS = [tool(hang), HangingTool(), Tool(name="hang", description="Hang.", func=hang)]


@pytest.mark.parametrize("given", SYNC_TOOLS, ids=["function", "class", "one-text"])
async def test_sync_tools_that_hang_hold_up_nothing_else(given: Any, tmp_path: Path):
    name = "__arg1" if isinstance(given, Tool) else "query"
    spec = ToolSpec(given, timeout_seconds=0.1)
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    HANGING.clear()
    try:
        with ScriptedChatModel([call("hang", **{name: "a"}), call("hang", **{name: "b"})], "done") as model:
            await RagAgent(model=model, tools=[spec]).aask("q")
        assert "no result within 0.1 s" in model.requests[1].messages[-1].text
        async with asyncio.timeout(5):
            assert await asyncio.to_thread(lambda: "free") == "free"
    finally:
        HANGING.set()
    with ScriptedChatModel(call("hang", **{name: "a"}), "done") as model, acting_as(Principal(tenant="acme")):
        await RagAgent(model=model, tools=[given]).aask("q")
    assert model.requests[1].messages[-1].text.startswith("late a for acme")


async def test_a_sync_tool_may_raise_what_no_future_holds():
    def first(rows: list[int]) -> int:
        """The first."""
        return next(iter(rows))

    with ScriptedChatModel(call("first", rows=[]), "done") as model:
        await RagAgent(model=model, tools=[first]).aask("q")
    assert '"type": "RuntimeError"' in model.requests[1].messages[-1].text
