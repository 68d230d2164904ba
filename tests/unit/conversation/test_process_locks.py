"""The locks against other processes by themselves."""

import asyncio
import gc
import os
import stat
import weakref
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from graphrag_agent.conversation.process_locks import AdvisoryLocks, FileLocks, held_against_others, process_locks_of
from graphrag_agent.errors import CheckpointerError


class Session:
    """A connection whose server takes its time; `locked` counts as a session of PostgreSQL does."""

    closed = False

    def __init__(self) -> None:
        self.locked = 0
        self.asked, self.may_reply = asyncio.Event(), asyncio.Event()

    async def execute(self, statement: str, arguments: Any = ()) -> Any:
        self.asked.set()
        self.locked = 0 if "all" in statement else self.locked + (1 if "try" in statement else -1)
        await self.may_reply.wait()
        return self

    async def fetchone(self) -> tuple[bool]:
        return (True,)


class Pool:
    def __init__(self, session: Session) -> None:
        self.session = session
        self.lent = 0

    async def getconn(self) -> Session:
        self.lent += 1
        return self.session

    async def putconn(self, session: Session) -> None:
        self.lent -= 1


class Saver:
    def __init__(self) -> None:
        self.conn = Pool(Session())

    async def guarded(self, call: Callable[[], Awaitable[Any]]) -> Any:
        return await call()


@pytest.mark.parametrize("other_turns", [0, 1])
async def test_a_lock_that_is_granted_to_a_cancelled_caller_is_given_back(other_turns: int):
    session = Session()
    pool = Pool(session)
    locks = AdvisoryLocks(pool, None)
    session.may_reply.set()
    for number in range(other_turns):
        await locks.try_lock(f"other {number}")
    session.asked.clear()
    session.may_reply.clear()
    trying = asyncio.create_task(locks.try_lock("t"))
    await session.asked.wait()
    for _ in range(3):
        trying.cancel()
        await asyncio.sleep(0)
    was_done = trying.done()
    session.may_reply.set()
    with pytest.raises(asyncio.CancelledError):
        await trying
    assert not was_done, "what the server says is waited for"
    assert (session.locked, pool.lent) == (other_turns, other_turns)


async def test_a_thread_is_let_go_only_once_its_lock_is_given_back():
    session = Session()
    session.may_reply.set()
    is_held = asyncio.Event()

    async def hold() -> None:
        async with held_against_others(AdvisoryLocks(Pool(session), None), "t", "refuse"):
            is_held.set()
            await asyncio.Event().wait()

    holding = asyncio.create_task(hold())
    await is_held.wait()
    session.may_reply.clear()
    for _ in range(5):
        holding.cancel()
        await asyncio.sleep(0)
    was_done = holding.done()
    session.may_reply.set()
    await asyncio.wait([holding])
    assert holding.cancelled() and not was_done and session.locked == 0


async def test_a_checkpointer_is_freed_with_its_locks():
    saver = Saver()
    locks = process_locks_of(saver)
    assert locks is not None and process_locks_of(saver) is locks
    saver.conn.session.may_reply.set()
    assert await locks.try_lock("t")
    await locks.unlock("t")
    gone = weakref.ref(saver)
    del saver
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("mode", [0o600, 0o660, 0o666])
async def test_the_file_of_locks_may_be_written_by_whoever_may_write_the_database(tmp_path: Path, mode: int):
    database = tmp_path / "threads.sqlite"
    database.touch()
    database.chmod(mode)
    assert await FileLocks(database).try_lock("t")
    assert stat.S_IMODE((tmp_path / "threads.sqlite-turns").stat().st_mode) == mode


async def test_a_file_of_locks_that_cannot_be_opened_is_no_busy_thread(tmp_path: Path, monkeypatch: Any):
    database = tmp_path / "threads.sqlite"
    database.touch()

    def refuse(path: Any, *args: Any) -> int:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(CheckpointerError, match=r"threads.sqlite-turns' can't be opened: Permission denied; whoever"):
        await FileLocks(database).try_lock("t")
