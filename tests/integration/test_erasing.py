"""Threads erased while turns run on them: what expires spares them, what is deleted stays away."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from graphrag_agent import Principal
from graphrag_agent.conversation.erasing import delete_threads, delete_threads_of, expire_threads
from graphrag_agent.conversation.running_turns import running_turns_of
from graphrag_agent.errors import ThreadBusyError
from graphrag_agent.identity import owner_of
from graphrag_agent.persistence.checkpointers import open_checkpointer
from graphrag_agent.persistence.threads import list_threads, thread_owner
from tests.canned import CannedKnowledge
from tests.integration.test_one_turn_at_a_time import Gate, agent, search, texts
from tests.integration.test_two_processes import start_child

ANN, BOB = Principal("acme", "ann"), Principal("acme", "bob")


pytestmark = pytest.mark.usefixtures("short_leases")


@pytest.fixture
def saver(checkpointer: Any) -> Any:
    return checkpointer


@pytest.mark.parametrize("durability", ["exit", "sync"])
async def test_what_expires_spares_a_thread_on_which_a_turn_runs(saver: Any, durability: Any):
    gate = Gate()
    rag = agent(gate, "first", "other", search(), "second", checkpointer=saver, durability=durability)
    await rag.aask("one?", thread="t")
    await rag.aask("other?", thread="o")
    running = asyncio.create_task(rag.aask("two?", thread="t"))
    await gate.wait_entered()
    assert await expire_threads(saver, keep=0) == ["o"]
    gate.is_open.set()
    assert (await running).text == "second"
    assert texts(await rag.ahistory("t")) == ["one?", "first", "two?", "second"]
    assert await expire_threads(saver, keep=0) == ["t"]


@pytest.mark.parametrize("durability", ["exit", "sync"])
@pytest.mark.parametrize("turns_before", [0, 1])
async def test_deleting_stops_the_running_and_the_waiting_turns_and_the_thread_stays_away(
    saver: Any, durability: Any, turns_before: int
):
    gate = Gate()
    steps = ["first"] * turns_before + [search(), "new"]
    rag = agent(gate, *steps, checkpointer=saver, durability=durability, wait=True)
    for _ in range(turns_before):
        await rag.aask("one?", thread="t", principal=ANN)
    running = asyncio.create_task(rag.aask("two?", thread="t", principal=ANN))
    await gate.wait_entered()
    waiting = asyncio.create_task(rag.aask("three?", thread="t", principal=ANN))
    await asyncio.sleep(0.02)
    assert await delete_threads(saver, ["t"], owner=owner_of(BOB)) == []
    assert not running.done()
    assert await delete_threads(saver, ["t", "never"], owner=owner_of(ANN)) == ["t"]
    assert [(await turn).outcome["ending"] for turn in (running, waiting)] == ["cancelled"] * 2
    assert await rag.ahistory("t", principal=ANN) == []
    assert (await list_threads(rag.graph, saver, owner=None)).threads == ()
    assert (await rag.aask("four?", thread="t", principal=BOB)).text == "new"
    assert await thread_owner(saver, "t") == owner_of(BOB)
    assert len(running_turns_of(str(saver._path) if hasattr(saver, "_path") else saver)) == 0


async def test_an_operator_deletes_whosever_turn_runs(saver: Any):
    gate = Gate()
    rag = agent(gate, search(), search(), checkpointer=saver)
    for delete in (
        lambda: delete_threads(saver, ["t"], owner=None),
        lambda: delete_threads_of(saver, owner_of(ANN)),
    ):
        gate.entered.clear()
        await rag.graph.aupdate_state(
            {"configurable": {"thread_id": "t"}, "metadata": {"graphrag_owner": owner_of(ANN)}},
            {"outcome": {}},  # type: ignore[arg-type]
            as_node="commit_answer",
        )
        running = asyncio.create_task(rag.aask("one?", thread="t", principal=ANN))
        await gate.wait_entered()
        assert await delete() == ["t"]
        assert (await running).outcome["ending"] == "cancelled"
        assert await thread_owner(saver, "t") is None


async def test_two_who_delete_the_same_threads_both_come_to_an_end(saver: Any):
    rag = agent(CannedKnowledge(), *["ok"] * 4, checkpointer=saver)
    names = ["a", "b", "c", "d"]
    for name in names:
        await rag.aask("one?", thread=name)
    both = (delete_threads(saver, names, owner=None), delete_threads(saver, names[::-1], owner=None))
    gone = await asyncio.wait_for(asyncio.gather(*both), 20)
    assert sorted([*gone[0], *gone[1]]) == names


async def test_a_turn_of_another_process_is_spared_and_its_thread_not_deleted(tmp_path: Path):
    path = tmp_path / "t.sqlite"
    async with open_checkpointer("sqlite", path) as saver:
        rag = agent(CannedKnowledge(), "first", checkpointer=saver)
        await rag.aask("one?", thread="t")
        child = await asyncio.to_thread(start_child, path)
        assert await expire_threads(saver, keep=0) == []
        with pytest.raises(ThreadBusyError, match="thread 't' has a running turn in another process; delete it later"):
            await delete_threads(saver, ["t"], owner=None)
        await asyncio.to_thread(child.communicate, "go\n")
        assert texts(await rag.ahistory("t")) == ["one?", "first", "child?", "the child's"]
        assert await delete_threads(saver, ["t"], owner=None) == ["t"]
