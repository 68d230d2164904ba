"""What pruning leaves: every end of a turn reads as before, in every branch, and no tool result is stored."""

import asyncio
import random
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langgraph.types import Command

from graphrag_agent.persistence.checkpointers import open_checkpointer
from graphrag_agent.persistence.pruning import prune_thread
from tests.research_world import PAYLOAD as PASSAGE
from tests.research_world import research_graph
from tests.thread_world import PAYLOAD, Kind, World, opened

KINDS = ("sqlite", "postgres")
DURABILITIES = ("sync", "async", "exit")


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def url(kind: Kind, request: pytest.FixtureRequest) -> str:
    return request.getfixturevalue("postgres_server").database() if kind == "postgres" else ""


async def checkpoints_of(world: World) -> int:
    return len([item async for item in world.saver.alist(world.config())])


async def stored(world: World) -> bytes:
    """All values of the world's checkpointer, as they lie there."""
    if not hasattr(world.saver, "connection"):
        with closing(sqlite3.connect(world.saver._path)) as database:  # type: ignore[attr-defined]
            columns = [("checkpoints", "checkpoint"), ("writes", "value")]
            rows = [row for table, column in columns for row in database.execute(f"SELECT {column} FROM {table}")]
            return b"".join(row[0] or b"" for row in rows)
    async with world.saver.connection() as connection:
        found = b""
        for table in ("checkpoint_writes", "checkpoint_blobs"):
            cursor = await connection.execute(f"SELECT blob FROM {table}")
            found += b"".join(bytes(row["blob"] or b"") for row in await cursor.fetchall())
        return found


@pytest.mark.parametrize("durability", ["sync", "async"])
async def test_a_finished_turn_leaves_its_end_only(kind: Kind, url: str, durability: str, tmp_path: Path):
    async with opened(kind, tmp_path / "t.sqlite", url) as world:
        for turn in range(3):
            head = await world.ask(f"question {turn}?", durability=durability)
            before = await world.reads(head)
            assert PAYLOAD in await stored(world)
            assert await prune_thread(world.graph, world.saver, world.thread) > 3
            assert await world.reads(head) == await world.reads() == before
            assert PAYLOAD not in await stored(world), "no tool result is left"
            assert await checkpoints_of(world) == turn + 2, "the first one and an end a turn"
            assert await prune_thread(world.graph, world.saver, world.thread) == 0
        assert [text for *_, text in (await world.reads())["values"]["messages"]][::2] == [
            f"question {turn}?" for turn in range(3)
        ]


async def test_an_unfinished_turn_is_kept_and_resumed(kind: Kind, url: str, tmp_path: Path):
    async with opened(kind, tmp_path / "t.sqlite", url) as world:
        await world.ask("one?")
        await world.die("two?", durability="sync", at=1)
        before = await world.reads()
        assert await prune_thread(world.graph, world.saver, world.thread) > 0, "the first turn's steps"
        assert await world.reads() == before
        await world.graph.ainvoke(None, world.config(), durability="sync")
        await prune_thread(world.graph, world.saver, world.thread)
        texts = [text[:6] for *_, text in (await world.reads())["values"]["messages"]]
        assert texts == ["one?", "after ", "two?", "after "]
        assert PAYLOAD not in await stored(world)


async def test_turns_left_unpruned_go_with_the_next(kind: Kind, url: str, tmp_path: Path):
    async with opened(kind, tmp_path / "t.sqlite", url) as world:
        for turn in range(3):
            await world.ask(f"{turn}?")
        await prune_thread(world.graph, world.saver, world.thread)
        assert await checkpoints_of(world) == 4


async def test_other_threads_and_nested_graphs_are_left_alone(kind: Kind, url: str, tmp_path: Path):
    async with opened(kind, tmp_path / "t.sqlite", url) as world:
        other, world.thread = world.thread, "a"
        await world.ask("a?")
        world.thread = other
        await world.ask("one?")
        nested: Any = {"configurable": {**world.config()["configurable"], "checkpoint_ns": "inner"}}
        newest = await world.saver.aget_tuple(world.config())
        assert newest is not None
        await world.saver.aput(nested, newest.checkpoint, newest.metadata, newest.checkpoint["channel_versions"])
        await prune_thread(world.graph, world.saver, world.thread)
        assert await world.saver.aget_tuple(nested) is not None
        world.thread = "a"
        assert await checkpoints_of(world) > 3


async def test_nested_turns_go_with_the_steps_that_they_ran_in(kind: Kind, url: str, tmp_path: Path):
    """And stay while the turn is unfinished, whatever durability it runs with."""
    async with open_checkpointer(kind, tmp_path / "t.sqlite", url=url) as saver:
        world = World(saver)
        world.thread = "t"
        world.graph = research_graph(tmp_path / "log", saver)
        await world.ask("one?")
        assert len(await saver.rows().nested("t")) == 2  # type: ignore[attr-defined]
        waiting = research_graph(tmp_path / "log", saver, pause_at="beta two")
        for durability, unfinished in (("sync", 2), ("exit", 1)):
            (tmp_path / "log").unlink()
            await waiting.ainvoke({"messages": [("user", "two?")]}, world.config(), durability=durability)
            await prune_thread(waiting, saver, "t")
            assert len(await saver.rows().nested("t")) == unfinished  # type: ignore[attr-defined]
            await waiting.ainvoke(Command(resume="go on"), world.config(), durability=durability)
            assert sorted((tmp_path / "log").read_text().splitlines()) == [
                *("add", "alpha one", "alpha two", "beta one", "beta two", "beta two")
            ]
            await prune_thread(waiting, saver, "t")
            assert await saver.rows().nested("t") == {}  # type: ignore[attr-defined]
            assert PASSAGE.encode() not in await stored(world)


async def test_a_checkpointer_of_another_make_is_left_alone():
    from langgraph.checkpoint.memory import InMemorySaver

    world = World(InMemorySaver())
    await world.ask("one?")
    before = await checkpoints_of(world)
    assert await prune_thread(world.graph, world.saver, world.thread) == 0
    assert await checkpoints_of(world) == before


async def random_history(world: World, rng: random.Random, steps: int) -> tuple[int, int]:
    """(Ends of turns, checkpoints pruned) of a history in which every end was compared after every step."""
    ends: dict[str, Any] = {}
    pruned = 0
    for step in range(steps):
        todo = rng.choice(["ask", "ask", "fork", "edit", "prune", "prune", "thorough", "die", "resume"])
        durability = rng.choice(DURABILITIES)
        head = None
        if todo in ("prune", "thorough"):
            pruned += await prune_thread(world.graph, world.saver, world.thread, thorough=todo == "thorough")
        elif todo == "die":
            await world.die(f"{step} dies?", durability=durability, at=rng.randrange(world.searches))
        elif todo == "resume":
            if (await world.reads())["next"]:
                await world.graph.ainvoke(None, world.config(), durability=durability)
                head = await world.newest()
        elif todo == "fork" and ends:
            head = await world.ask(f"{step} forks?", durability=durability, head=rng.choice(list(ends)))
        elif todo == "edit" and ends:
            at = rng.choice(list(ends))
            questions = [id_ for id_, kind, _ in ends[at]["values"]["messages"] if kind == "human"]
            head = await world.ask(f"{step} edits?", durability=durability, head=at, id_=rng.choice(questions))
        else:
            head = await world.ask(f"{step}?", durability=durability)
        if head is not None:
            ends[head] = await world.reads(head)
        for end, read in ends.items():
            assert await world.reads(end) == read, (step, todo, durability, end)
    return len(ends), pruned


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(seed=st.integers(0, 10**9))
def test_every_end_of_every_branch_reads_the_same_whatever_happens(
    kind: Kind, url: str, tmp_path_factory: pytest.TempPathFactory, seed: int
):
    async def run() -> None:
        async with opened(kind, tmp_path_factory.mktemp("history") / "t.sqlite", url) as world:
            await random_history(world, random.Random(seed), 14)

    asyncio.run(run())


async def test_messages_are_copied_as_seldom_as_langgraph_copies_them(kind: Kind, url: str, tmp_path: Path):
    """A copy is as long as the thread: one for each turn would make the thread's size quadratic."""
    async with opened(kind, tmp_path / "t.sqlite", url, searches=1) as world:
        for turn in range(36):
            await world.ask(f"{turn}?", durability="async")
            await prune_thread(world.graph, world.saver, world.thread)
        copies = (await stored(world)).count(("after 1 " * 39).encode()) / 36
        assert 1 <= copies < 4, "each answer is there once, and in the copies since: one in 15 turns"
        assert len((await world.reads())["values"]["messages"]) == 72
