"""No node, tool or store blocks the event loop."""

import time
from pathlib import Path

import pytest
from blockbuster import BlockingError
from langchain_core.tools import tool

from graphrag_agent import KnowledgeBase, RagAgent, ToolSpec, acting_as
from graphrag_agent.identity import Principal
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
