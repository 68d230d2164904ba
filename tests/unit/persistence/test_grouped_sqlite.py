"""Writes that wait for each other share a transaction; the rows are those of LangGraph's saver."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import aiosqlite
import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from graphrag_agent.errors import CheckpointerError
from graphrag_agent.persistence.checkpointers import open_checkpointer
from graphrag_agent.persistence.grouped_sqlite import GroupedSqliteSaver


@asynccontextmanager
async def opened(path: Path) -> AsyncIterator[GroupedSqliteSaver]:
    async with open_checkpointer("sqlite", path) as saver:
        assert isinstance(saver, GroupedSqliteSaver)
        yield saver


def config_of(thread: str, checkpoint: str | None = None) -> Any:
    place = {"thread_id": thread, "checkpoint_ns": ""}
    return {"configurable": {**place, **({"checkpoint_id": checkpoint} if checkpoint else {})}}


def checkpoint_of(value: Any) -> Any:
    return {**empty_checkpoint(), "channel_values": {"x": value}, "channel_versions": {"x": 1}}


def rows_of(path: Path) -> list[list[tuple[Any, ...]]]:
    with closing(sqlite3.connect(path)) as database:
        return [list(database.execute(f"SELECT * FROM {table} ORDER BY 1, 2, 3, 4, 5, 6")) for table in TABLES]


TABLES = ("checkpoints", "writes")


async def history(saver: Any, first: Any, second: Any) -> None:
    config = await saver.aput(config_of("t"), first, {"source": "input", "step": -1, "note": "für"}, {})
    await saver.aput_writes(config, [("x", [1, "é"]), ("y", None)], "task", "path")
    await saver.aput_writes(config, [("x", "again")], "task", "path")
    await saver.aput_writes(config, [("__interrupt__", "wait")], "task")
    await saver.aput_writes(config, [("__interrupt__", "wait more")], "task")
    await saver.aput(config, second, {"source": "loop", "step": 0}, {})
    await saver.aput(config, second, {"source": "loop", "step": 1}, {})


async def test_writes_the_rows_of_langgraphs_own_saver(tmp_path: Path):
    first, second = checkpoint_of("a"), checkpoint_of({"b": 1})
    async with opened(tmp_path / "ours.sqlite") as ours:
        await history(ours, first, second)
        read = await ours.aget_tuple(config_of("t"))
    async with aiosqlite.connect(tmp_path / "theirs.sqlite") as connection:
        await history(AsyncSqliteSaver(connection), first, second)
    assert rows_of(tmp_path / "ours.sqlite") == rows_of(tmp_path / "theirs.sqlite")
    assert [len(rows) for rows in rows_of(tmp_path / "ours.sqlite")] == [2, 3]
    assert read is not None
    assert read.metadata == {"source": "loop", "step": 1}


async def test_what_was_awaited_is_on_disk(tmp_path: Path):
    async with opened(tmp_path / "t.sqlite") as saver:
        for number in range(20):
            await saver.aput(config_of(f"t{number}"), checkpoint_of(number), {}, {})
            assert len(rows_of(tmp_path / "t.sqlite")[0]) == number + 1, "another connection sees it at once"


async def test_many_writers_share_a_transaction(tmp_path: Path):
    async with opened(tmp_path / "t.sqlite") as saver:
        batches: list[int] = []
        commit = saver._writer._commit

        def counted(batch: Any) -> Exception | None:
            batches.append(len(batch))
            return commit(batch)

        saver._writer._commit = counted  # type: ignore[method-assign]
        await asyncio.gather(*(saver.aput(config_of(f"t{n}"), checkpoint_of(n), {}, {}) for n in range(50)))
        assert sum(batches) == 50
        assert len(batches) <= 3
        read = [await saver.aget_tuple(config_of(f"t{n}")) for n in range(50)]
        assert [item and item.checkpoint["channel_values"]["x"] for item in read] == list(range(50))


async def test_who_writes_what_cant_be_stored_is_told_and_nobody_else(tmp_path: Path):
    async with opened(tmp_path / "t.sqlite") as saver:
        bad = saver.aput_writes(config_of("bad", "c"), [("x", 1)], task_id={"not": "text"})  # type: ignore[arg-type]
        results = await asyncio.gather(
            saver.aput(config_of("a"), checkpoint_of(1), {}, {}),
            bad,
            saver.aput(config_of("b"), checkpoint_of(2), {}, {}),
            return_exceptions=True,
        )
        assert isinstance(results[1], sqlite3.Error)
        checkpoints, writes = rows_of(tmp_path / "t.sqlite")
        assert [row[0] for row in checkpoints] == ["a", "b"]
        assert writes == []


async def test_a_cancelled_caller_leaves_the_others_be(tmp_path: Path):
    async with opened(tmp_path / "t.sqlite") as saver:
        first = asyncio.create_task(saver.aput(config_of("a"), checkpoint_of(1), {}, {}))
        others = [asyncio.create_task(saver.aput(config_of(f"b{n}"), checkpoint_of(n), {}, {})) for n in range(5)]
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.gather(*others)
        with pytest.raises(asyncio.CancelledError):
            await first
    assert {row[0] for row in rows_of(tmp_path / "t.sqlite")[0]} >= {f"b{n}" for n in range(5)}


async def test_closing_waits_for_what_is_being_written(tmp_path: Path):
    async with opened(tmp_path / "t.sqlite") as saver:
        writing = [asyncio.create_task(saver.aput(config_of(f"t{n}"), checkpoint_of(n), {}, {})) for n in range(30)]
        await asyncio.sleep(0)
    assert len(rows_of(tmp_path / "t.sqlite")[0]) == 30
    await asyncio.gather(*writing)


async def test_a_locked_database_is_waited_for(tmp_path: Path):
    async with opened(tmp_path / "t.sqlite") as saver:
        other = sqlite3.connect(tmp_path / "t.sqlite", check_same_thread=False, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        waiting = asyncio.create_task(saver.aput(config_of("t"), checkpoint_of(1), {}, {}))
        await asyncio.sleep(0.2)
        assert not waiting.done()
        other.execute("COMMIT")
        await waiting
        other.close()
    assert len(rows_of(tmp_path / "t.sqlite")[0]) == 1


async def test_a_database_that_stays_locked_is_an_error_for_all_who_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("graphrag_agent.persistence.grouped_sqlite.BUSY_SECONDS", 0.1)
    async with opened(tmp_path / "t.sqlite") as saver:
        other = sqlite3.connect(tmp_path / "t.sqlite", check_same_thread=False, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        tries = [saver.aput(config_of(f"t{n}"), checkpoint_of(n), {}, {}) for n in range(3)]
        results = await asyncio.gather(*tries, return_exceptions=True)
        assert [type(result) for result in results] == [CheckpointerError] * 3
        assert "database is locked; another process writes" in str(results[0])
        other.execute("COMMIT")
        other.close()
        await saver.aput(config_of("later"), checkpoint_of(1), {}, {})
    assert [row[0] for row in rows_of(tmp_path / "t.sqlite")[0]] == ["later"]


async def test_a_thread_can_be_deleted_between_writes(tmp_path: Path):
    async with opened(tmp_path / "t.sqlite") as saver:
        for thread in ("a", "b"):
            config = await saver.aput(config_of(thread), checkpoint_of(1), {}, {})
            await saver.aput_writes(config, [("x", 1)], "task")
        await saver.adelete_thread("a")
        await saver.aput(config_of("c"), checkpoint_of(1), {}, {})
    checkpoints, writes = rows_of(tmp_path / "t.sqlite")
    assert [row[0] for row in checkpoints] == ["b", "c"]
    assert [row[0] for row in writes] == ["b"]


async def test_the_copies_that_langgraph_makes_share_the_writer(tmp_path: Path):
    async with opened(tmp_path / "t.sqlite") as saver:
        copied = saver.with_allowlist([("some.module", "SomeType")])
        assert copied is not saver
        await copied.aput(config_of("t"), checkpoint_of(1), {}, {})
        assert copied._writer is saver._writer  # type: ignore[attr-defined]
