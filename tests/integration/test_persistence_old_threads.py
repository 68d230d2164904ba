"""Threads that version 0.1 left open, go on and are exported; what another version added is ignored.

tests/data/threads/v0_1.* hold one thread "old" of user ann: a turn, one after it, an edit of that, and a killed turn.
"""

import re
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.base.id import uuid6

from graphrag_agent.identity import OWNER_KEY, Principal, owner_of
from graphrag_agent.persistence.pruning import prune_thread
from graphrag_agent.persistence.threads import export_thread, list_threads
from tests.thread_world import Kind, World, opened

OLD = Path(__file__).parents[1] / "data" / "threads"
ANN = owner_of(Principal(user="ann"))


@asynccontextmanager
async def old_world(kind: Kind, tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[World]:
    url = ""
    if kind == "postgres":
        import psycopg

        url = request.getfixturevalue("postgres_server").database()
        with psycopg.connect(url, autocommit=True) as connection:
            dump = (OLD / "v0_1.sql").read_text().replace("CREATE INDEX CONCURRENTLY", "CREATE INDEX")
            connection.execute(dump)  # type: ignore[call-overload]
    else:
        shutil.copy(OLD / "v0_1.sqlite", tmp_path / "t.sqlite")
    async with opened(kind, tmp_path / "t.sqlite", url, searches=1) as world:
        world.thread, world.metadata = "old", {OWNER_KEY: ANN}
        yield world


async def questions(world: World) -> list[str]:
    return [text for _, kind, text in (await world.reads())["values"]["messages"] if kind == "human"]


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_an_old_thread_opens_goes_on_and_is_exported(kind: Kind, tmp_path: Path, request: Any):
    async with old_world(kind, tmp_path, request) as world:
        (thread,) = (await list_threads(world.graph, world.saver, owner=ANN)).threads
        assert (thread.id, thread.title) == ("old", "one?")
        export = await export_thread(world.graph, world.saver, "old", owner=ANN)
        said = [[m["text"] for m in branch["messages"] if m["role"] == "user"] for branch in export["branches"]]
        assert said == [["one?", "two?"], ["one?", "two, asked otherwise?", "three dies?"]]
        assert export["branches"][0]["messages"][1]["outcome"]["ending"] == "answered"
        assert re.match("after 1", export["branches"][0]["messages"][3]["text"])
        await world.ask("four?", durability="sync")
        await prune_thread(world.graph, world.saver, "old", thorough=True)
        assert await questions(world) == ["one?", "two, asked otherwise?", "three dies?", "four?"]


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_a_killed_turn_of_old_is_resumed(kind: Kind, tmp_path: Path, request: Any):
    async with old_world(kind, tmp_path, request) as world:
        await world.graph.ainvoke(None, world.config(), durability="sync")
        messages = (await world.reads())["values"]["messages"]
        assert [kind for _, kind, _ in messages] == ["human", "ai"] * 3


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_channels_of_other_versions_are_ignored(kind: Kind, tmp_path: Path, request: Any):
    async with old_world(kind, tmp_path, request) as world:
        world.thread = "odd"
        await world.ask("one?")
        newest = await world.saver.aget_tuple(world.config())
        assert newest is not None
        version = world.saver.get_next_version(max(newest.checkpoint["channel_versions"].values()), None)
        added = {"turn_plan": {"made": "later"}, "flag": True}
        odd: Any = {
            **newest.checkpoint,
            "id": str(uuid6(clock_seq=-2)),
            "channel_values": {**newest.checkpoint["channel_values"], **added},
            "channel_versions": {**newest.checkpoint["channel_versions"], **dict.fromkeys(added, version)},
        }
        await world.saver.aput(newest.config, odd, {**newest.metadata, "step": 9}, dict.fromkeys(added, version))
        assert await world.newest() == odd["id"]
        head = await world.ask("two?", durability="sync")
        before = await world.reads(head)
        assert await prune_thread(world.graph, world.saver, "odd") > 0
        assert await world.reads(head) == before
        assert await questions(world) == ["one?", "two?"]
