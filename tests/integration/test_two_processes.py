"""Two processes, or two checkpointers of one process, on one thread: one is refused or waits; nothing is mixed."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from graphrag_agent import RagAgent, Settings
from graphrag_agent.errors import ThreadBusyError
from graphrag_agent.graph import eager
from graphrag_agent.persistence.checkpointers import open_checkpointer
from graphrag_agent.testing import ScriptedChatModel, call
from tests.canned import CannedKnowledge
from tests.integration.test_one_turn_at_a_time import Gate, agent, search, texts

ROOT = Path(__file__).parents[2]
CHILD = """
import asyncio, sys
from pathlib import Path
from graphrag_agent.persistence.checkpointers import open_checkpointer
from tests.canned import CannedKnowledge
from tests.canned import CannedKnowledge
from tests.integration.test_one_turn_at_a_time import agent, search

class Waits(CannedKnowledge):
    async def asearch(self, *args, **kwargs):
        print("searching", flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
        return await super().asearch(*args, **kwargs)

async def main():
    async with open_checkpointer("sqlite", Path(sys.argv[1])) as saver:
        print((await agent(Waits(), search(), "the child's", checkpointer=saver).aask("child?", thread="t")).text)

asyncio.run(main())
"""


def start_child(path: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-W", "ignore", "-c", CHILD, str(path)]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert child.stdout is not None and child.stdout.readline() == "searching\n"
    return child


async def test_a_turn_of_another_process_refuses_ours_and_its_death_frees_the_thread(tmp_path: Path):
    path = tmp_path / "t.sqlite"
    async with open_checkpointer("sqlite", path) as saver:
        rag = agent(Gate(), "first", "ours", checkpointer=saver)
        await rag.aask("one?", thread="t")
        child = await asyncio.to_thread(start_child, path)
        with pytest.raises(ThreadBusyError, match="thread 't' has a running turn in another process"):
            await rag.aask("two?", thread="t")
        await asyncio.to_thread(child.communicate, "go\n")
        assert texts(await rag.ahistory("t")) == ["one?", "first", "child?", "the child's"]
        child = await asyncio.to_thread(start_child, path)
        child.kill()
        await asyncio.to_thread(child.communicate)
        await rag.aask("two?", thread="t")
        assert texts(await rag.ahistory("t"))[4:] == ["two?", "ours"]


async def test_ours_waits_for_it_where_it_is_told_to(tmp_path: Path):
    path = tmp_path / "t.sqlite"
    async with open_checkpointer("sqlite", path) as saver:
        rag = agent(Gate(), "ours", checkpointer=saver, wait=True)
        child = await asyncio.to_thread(start_child, path)
        asking = asyncio.create_task(rag.aask("two?", thread="t"))
        await asyncio.sleep(0.25)
        assert not asking.done()
        await asyncio.to_thread(child.communicate, "go\n")
        await asking
        assert texts(await rag.ahistory("t")) == ["child?", "the child's", "two?", "ours"]


async def test_two_checkpointers_of_one_file_share_its_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(eager, "LEASE_SECONDS", 0.05)
    gate, path = Gate(), tmp_path / "t.sqlite"
    async with open_checkpointer("sqlite", path) as one, open_checkpointer("sqlite", path) as two:
        running = asyncio.create_task(agent(gate, search(), "a", checkpointer=one).aask("one?", thread="t"))
        await gate.wait_entered()
        with pytest.raises(ThreadBusyError):
            await agent(gate, "b", checkpointer=two).aask("two?", thread="t")
        gate.is_open.set()
        await running
        assert (await agent(gate, "b", checkpointer=two).aask("two?", thread="t")).text == "b"


@pytest.mark.parametrize("durability", ["async", "sync"])
@pytest.mark.parametrize("is_pruned", [True, False])
async def test_steps_go_after_a_turn_unless_they_are_to_stay(tmp_path: Path, durability: Any, is_pruned: bool):
    async with open_checkpointer("sqlite", tmp_path / "t.sqlite") as saver:
        rag = RagAgent(
            model=ScriptedChatModel(*[call("knowledge_search", query="x"), "done"] * 3),
            knowledge=CannedKnowledge(),
            checkpointer=saver,
            durability=durability,
            settings=Settings(prune=is_pruned),
        )
        first = await rag.aask("one?", thread="t")
        await rag.aask("two?", thread="t")
        await rag.aedit(first.question_id, "uno?", thread="t")
        rows = await (await saver.conn.execute("SELECT value FROM writes")).fetchall()  # type: ignore[attr-defined]
        assert (b"All about x" in b"".join(row[0] for row in rows)) is not is_pruned
        branches = await rag.abranches("t")
        assert [branch.turns for branch in branches] == [1, 2]
        assert texts(await rag.ahistory("t", branch=branches[1].head)) == ["one?", "done", "two?", "done"]


async def test_two_postgres_sessions_exclude_each_other_and_lend_the_connection_back(postgres_server: Any):
    gate, url = Gate(), postgres_server.database()
    async with (
        open_checkpointer("postgres", Path(), url=url) as one,
        open_checkpointer("postgres", Path(), url=url) as two,
    ):
        running = asyncio.create_task(agent(gate, search(), "a", checkpointer=one).aask("one?", thread="t"))
        await gate.wait_entered()
        other = agent(gate, "b", "c", checkpointer=two)
        with pytest.raises(ThreadBusyError, match="in another process"):
            await other.aask("two?", thread="t")
        assert (await other.aask("two?", thread="another")).text == "b"
        gate.is_open.set()
        await running
        assert (await other.aask("two?", thread="t")).text == "c"
        assert texts(await other.ahistory("t")) == ["one?", "a", "two?", "c"]
        for saver in (one, two):
            stats = saver.conn.get_stats()  # type: ignore[attr-defined]
            assert stats["pool_available"] == stats["pool_size"], "no connection is kept"
