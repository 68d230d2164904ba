"""Threads listed, exported, deleted and let go; whose they are, and what is left of them on the disk."""

import asyncio
import json
import random
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from graphrag_agent.conversation.erasing import delete_threads, delete_threads_of, expire_threads
from graphrag_agent.errors import ThreadError
from graphrag_agent.identity import OWNER_KEY, PUBLIC, PUBLIC_OWNER, Principal, owner_of
from graphrag_agent.persistence.pruning import prune_thread
from graphrag_agent.persistence.threads import (
    compact,
    export_thread,
    list_threads,
    thread_owner,
)
from graphrag_agent.persistence.time_ids import time_of
from tests.postgres_server import PostgresServer
from tests.thread_world import World, opened

ANN, BOB = owner_of(Principal(user="ann")), owner_of(Principal(user="bob"))


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    if request.param == "memory":
        yield World(InMemorySaver(), searches=1)
        return
    url = request.getfixturevalue("postgres_server").database() if request.param == "postgres" else ""
    async with opened(request.param, tmp_path / "t.sqlite", url, searches=1) as made:
        yield made


async def ask(world: World, thread: str, text: str, owner: str = PUBLIC_OWNER, **options: Any) -> str:
    world.thread, world.metadata = thread, {OWNER_KEY: owner}
    return await world.ask(text, **options)


async def test_threads_are_listed_per_owner_with_the_last_used_first(world: World):
    began = datetime.now(UTC)
    for thread, owner in (("a1", ANN), ("b1", BOB), ("a2", ANN)):
        await ask(world, thread, f"What  is\n{thread}?", owner)
    await ask(world, "a1", "And then?", ANN)
    page = await list_threads(world.graph, world.saver, owner=ANN)
    assert [(thread.id, thread.turns, thread.title) for thread in page.threads] == [
        ("a1", 2, "What is a1?"),
        ("a2", 1, "What is a2?"),
    ]
    assert {thread.owner for thread in page.threads} == {ANN}
    assert all(thread.used and began <= thread.used <= datetime.now(UTC) for thread in page.threads)
    assert page.next == ""
    everybody = await list_threads(world.graph, world.saver, owner=None)
    assert [thread.id for thread in everybody.threads] == ["a1", "a2", "b1"]
    assert (await list_threads(world.graph, world.saver, owner=PUBLIC_OWNER)).threads == ()


async def test_a_thread_without_an_owner_is_the_publics(world: World):
    world.thread = "old"
    await world.ask("one?")
    assert await thread_owner(world.saver, "old") == PUBLIC_OWNER == owner_of(PUBLIC)
    assert [thread.id for thread in (await list_threads(world.graph, world.saver, owner=PUBLIC_OWNER)).threads] == [
        "old"
    ]
    assert await thread_owner(world.saver, "never") is None


async def test_pages_tell_every_thread_once(world: World):
    for number in range(7):
        await ask(world, f"t{number}", "?", durability="exit")
    seen, after = [], ""
    while True:
        page = await list_threads(world.graph, world.saver, owner=PUBLIC_OWNER, limit=3, after=after)
        seen.append([thread.id for thread in page.threads])
        if not (after := page.next):
            break
    assert seen == [["t6", "t5", "t4"], ["t3", "t2", "t1"], ["t0"]]


async def test_a_long_first_question_is_shortened(world: World):
    await ask(world, "t", "word " * 100)
    (thread,) = (await list_threads(world.graph, world.saver, owner=None)).threads
    assert len(thread.title) <= 80
    assert thread.title.endswith("word…")


async def test_an_export_holds_every_branch(world: World):
    first = await ask(world, "t", "one?", ANN)
    await ask(world, "t", "two?", ANN)
    await ask(world, "t", "two, asked otherwise?", ANN, head=first)
    await prune_thread(world.graph, world.saver, "t", thorough=True)
    export = await export_thread(world.graph, world.saver, "t", owner=ANN)
    assert json.loads(json.dumps(export)) == export
    assert export["owner"] == ANN
    said = [[message["text"] for message in branch["messages"]] for branch in export["branches"]]
    assert [texts[::2] for texts in said] == [["one?", "two?"], ["one?", "two, asked otherwise?"]]
    answer = export["branches"][0]["messages"][1]
    assert answer["role"] == "assistant"
    assert answer["outcome"]["ending"] == "answered"
    assert answer["citations"] == []


async def test_anothers_thread_can_be_neither_exported_nor_deleted(world: World):
    await ask(world, "t", "one?", ANN)
    for owner, thread in ((BOB, "t"), (ANN, "never")):
        with pytest.raises(ThreadError, match=f"there is no thread '{thread}'"):
            await export_thread(world.graph, world.saver, thread, owner=owner)
        assert await delete_threads(world.saver, [thread], owner=owner) == []
    assert await thread_owner(world.saver, "t") == ANN
    assert await delete_threads(world.saver, ["t"], owner=ANN) == ["t"]
    assert await thread_owner(world.saver, "t") is None


async def test_all_of_an_owner_can_be_deleted(world: World):
    for thread, owner in (("a1", ANN), ("b1", BOB), ("a2", ANN)):
        await ask(world, thread, "?", owner)
    assert sorted(await delete_threads_of(world.saver, ANN)) == ["a1", "a2"]
    assert [thread.id for thread in (await list_threads(world.graph, world.saver, owner=None)).threads] == ["b1"]


async def test_threads_go_by_age_and_by_number(world: World):
    for number in range(5):
        await ask(world, f"t{number}", "?")
    world.thread = "t3"
    used = time_of(await world.newest())
    assert used
    assert await expire_threads(world.saver) == []
    assert await expire_threads(world.saver, older_than=timedelta(days=1), keep=5) == []
    assert await expire_threads(world.saver, keep=4) == ["t0"]
    assert await expire_threads(world.saver, older_than=timedelta(days=30), keep=3) == ["t1"]
    assert await expire_threads(world.saver, older_than=timedelta(days=30), now=used + timedelta(days=30)) == ["t2"]
    assert await expire_threads(world.saver, older_than=timedelta(0), now=used + timedelta(days=1)) == ["t4", "t3"]
    assert (await list_threads(world.graph, world.saver, owner=None)).threads == ()


async def test_what_an_owner_may_keep_counts_his_threads_only(world: World):
    for thread, owner in (("a1", ANN), ("b1", BOB), ("a2", ANN), ("b2", BOB)):
        await ask(world, thread, "?", owner)
    assert await expire_threads(world.saver, keep=1, owner=ANN) == ["a1"]
    assert await thread_owner(world.saver, "b1") == BOB


async def test_ids_and_owners_are_data_and_no_code(world: World):
    odd = ["'; DROP TABLE checkpoints; --", "%s", "日本 ' \" \\", "a b"]
    for thread in odd:
        await ask(world, thread, "?", owner_of(Principal(user=thread)))
    for thread in odd:
        mine = await list_threads(world.graph, world.saver, owner=owner_of(Principal(user=thread)))
        assert [item.id for item in mine.threads] == [thread]
        assert await delete_threads(world.saver, [thread], owner=owner_of(Principal(user=thread))) == [thread]


def remains(folder: Path, word: str) -> list[str]:
    return [path.name for path in folder.rglob("*") if path.is_file() and word.encode() in path.read_bytes()]


@pytest.mark.parametrize("seed", range(6))
async def test_deleted_bytes_are_gone_from_a_sqlite_file(tmp_path: Path, seed: int):
    rng = random.Random(seed)
    async with opened("sqlite", tmp_path / "t.sqlite", searches=1) as world:
        await ask(world, "other1", "openword")
        for _ in range(12):
            thread = rng.choice(["secretthread", "other1", "other2"])
            word = "secretword " if thread == "secretthread" else "openword "
            await ask(world, thread, word * rng.choice([1, 30, 900]), durability=rng.choice(["sync", "exit"]))
            if rng.random() < 0.5:
                await prune_thread(world.graph, world.saver, thread)
        await ask(world, "secretthread", "secretword")
        assert remains(tmp_path, "secretword")
        await delete_threads(world.saver, ["secretthread"], owner=None)
        assert remains(tmp_path, "secretword") == remains(tmp_path, "secretthread") == []
        assert remains(tmp_path, "openword") == ["t.sqlite"]
    assert remains(tmp_path, "secretword") == []


async def test_pruned_bytes_are_gone_from_a_sqlite_file_once_its_log_is_empty(tmp_path: Path):
    async with opened("sqlite", tmp_path / "t.sqlite", searches=1) as world:
        await world.ask("one?")
        await prune_thread(world.graph, world.saver, world.thread)
        await compact(world.saver)
        assert remains(tmp_path, "word7 word8") == []


async def test_deleted_bytes_stay_on_a_postgres_server_until_its_tables_are_written_anew(
    postgres_server: PostgresServer,
):
    async with opened("postgres", Path(), postgres_server.database(), searches=1) as world:
        await ask(world, "secretthread", "secretword " * 50)
        await ask(world, "other", "openword " * 50)
        tables = postgres_server.data / "base"
        await delete_threads(world.saver, ["secretthread"], owner=None)
        async with world.saver.connection() as connection:  # type: ignore[attr-defined]
            await connection.execute("CHECKPOINT")
        assert remains(tables, "secretword"), "as the documentation says"
        await compact(world.saver)
        async with world.saver.connection() as connection:  # type: ignore[attr-defined]
            await connection.execute("CHECKPOINT")
        assert remains(tables, "secretword") == remains(tables, "secretthread") == []
        assert remains(tables, "openword")


async def test_a_thread_that_is_written_to_meanwhile_stays(tmp_path: Path):
    async with opened("sqlite", tmp_path / "t.sqlite", searches=1) as world:
        await ask(world, "t", "one?")
        seen = await world.newest()
        await ask(world, "t", "two?")
        assert await world.saver.rows().erase([("t", seen)]) == []  # type: ignore[attr-defined]
        assert await thread_owner(world.saver, "t") is not None


async def test_deleting_waits_for_no_other_thread(tmp_path: Path):
    async with opened("sqlite", tmp_path / "t.sqlite", searches=1) as world:
        for number in range(8):
            await ask(world, f"t{number}", "?")
        await asyncio.gather(
            ask(world, "t9", "another?"),
            *(delete_threads(world.saver, [f"t{number}"], owner=None) for number in range(8)),
        )
        assert [thread.id for thread in (await list_threads(world.graph, world.saver, owner=None)).threads] == ["t9"]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "count"), [("sqlite", 1_000), ("postgres", 200)])
async def test_a_thousand_threads_of_twenty_turns(
    kind: Any, count: int, tmp_path: Path, request: pytest.FixtureRequest
):
    url = request.getfixturevalue("postgres_server").database() if kind == "postgres" else ""
    async with opened(kind, tmp_path / "t.sqlite", url, searches=0) as world:
        saver, names = world.saver, [f"thread {number:03}" for number in range(count)]
        graph = world.graph
        alone = await _seconds_of_a_turn(world, "alone")

        async def fill(name: str) -> None:
            config: Any = {"configurable": {"thread_id": name}, "metadata": {OWNER_KEY: ANN}}
            said = [(HumanMessage(f"{name}, {turn}?"), AIMessage(f"answer {turn}")) for turn in range(19)]
            messages = [message for pair in said for message in pair]
            await graph.aupdate_state(config, {"messages": messages}, as_node="commit_answer")
            await graph.ainvoke({"messages": [HumanMessage(f"{name}, last?")]}, config, durability="exit")

        for start in range(0, len(names), 50):
            await asyncio.gather(*map(fill, names[start : start + 50]))
        told, after = [], ""
        while not told or after:
            page = await list_threads(graph, saver, owner=ANN, limit=150, after=after)
            told, after = [*told, *page.threads], page.next
        assert sorted(thread.id for thread in told) == names
        assert {thread.turns for thread in told} == {20}
        assert told[0].title == f"{told[0].id}, 0?"
        assert await _seconds_of_a_turn(world, "alone") < 3 * alone + 0.05
        export = await export_thread(graph, saver, names[7], owner=ANN)
        assert json.dumps(export).count("thread 007, ") == 20
        gone = await expire_threads(saver, keep=10, owner=ANN)
        assert sorted(gone) == sorted(thread.id for thread in told[10:])
        left = await list_threads(graph, saver, owner=ANN, limit=100)
        assert [(thread.id, thread.turns) for thread in left.threads] == [(thread.id, 20) for thread in told[:10]]


async def _seconds_of_a_turn(world: World, thread: str) -> float:
    """The best of some, by the CPU that this thread used."""
    best = 60.0
    for turn in range(5):
        began = time.thread_time()
        await ask(world, thread, f"{turn}?", BOB, durability="exit")
        best = min(best, time.thread_time() - began)
    return best
