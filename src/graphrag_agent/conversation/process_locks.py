"""Threads held against other processes that run turns on the same database.

Two runs that start from one checkpoint write into each other: LangGraph stores what a Delta channel gets with the
checkpoint before, so either branch would read the other's question. Both kinds of lock end with their process.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import sys
import threading
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from graphrag_agent.conversation.running_turns import WhenBusy
from graphrag_agent.errors import CheckpointerError, ThreadBusyError
from graphrag_agent.finishing import finish

logger = logging.getLogger(__name__)

RETRY_SECONDS = 0.1


class ProcessLocks(Protocol):
    """The locks of one database."""

    async def try_lock(self, thread: str) -> bool:
        """Whether the thread is this process's from now on."""

    async def unlock(self, thread: str) -> None:
        """Let it go."""


@asynccontextmanager
async def held_against_others(locks: ProcessLocks | None, thread: str, when_busy: WhenBusy) -> AsyncIterator[None]:
    """The thread is this process's inside the block. Raises ThreadBusyError where another has it and nobody waits."""
    if locks is None:
        yield
        return
    while not await locks.try_lock(thread):
        if when_busy == "refuse":
            raise ThreadBusyError(
                f"thread {thread!r} has a running turn in another process; ask again later, "
                "or set GRAPHRAG_WHEN_BUSY=wait"
            )
        await asyncio.sleep(RETRY_SECONDS)
    try:
        yield
    finally:
        await finish(locks.unlock(thread))  # a next turn of ours must not lock before that


def database_of(checkpointer: Any) -> object:
    """What two checkpointers of this process share if they write to the same SQLite file; else the checkpointer."""
    path = _sqlite_path(checkpointer)
    return str(path) if path else checkpointer


def process_locks_of(checkpointer: Any) -> ProcessLocks | None:
    """The locks of the database: our SQLite file or a pool of PostgreSQL; None for others, memory among them."""
    if path := _sqlite_path(checkpointer):
        return None if sys.platform == "win32" else FileLocks(path)
    pool = getattr(checkpointer, "conn", None)
    if hasattr(pool, "getconn") and hasattr(pool, "putconn"):
        with _advisory_guard:
            return _advisory.setdefault(checkpointer, AdvisoryLocks(pool, getattr(checkpointer, "guarded", None)))
    return None


class FileLocks:
    """One byte of a file beside the database stands for a thread. Instant, once it is open: on the event loop then."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self._path = database.with_name(f"{database.name}-turns")

    async def try_lock(self, thread: str) -> bool:
        """Whether no other process has the byte."""
        import fcntl

        # not below: a file that can't be opened is no busy thread
        file = _files[self._path] if self._path in _files else await asyncio.to_thread(self._file)
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _number_of(thread))
        except (BlockingIOError, PermissionError):
            return False
        return True

    async def unlock(self, thread: str) -> None:
        """Let the byte go."""
        import fcntl

        fcntl.lockf(self._file(), fcntl.LOCK_UN, 1, _number_of(thread))

    def _file(self) -> int:
        """Opened once a process and never closed: closing one handle would end the locks of all."""
        with _files_guard:
            if self._path not in _files:
                try:
                    _files[self._path] = self._opened()
                except OSError as error:
                    raise CheckpointerError(
                        f"{str(self._path)!r} can't be opened: {error.strerror}; whoever may write the database must "
                        "be able to write this file beside it"
                    ) from error
            return _files[self._path]

    def _opened(self) -> int:
        """With the rights of the database, whatever the umask: who may write there may write here."""
        mode = self._database.stat().st_mode & 0o666
        file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, mode)
        with suppress(OSError):  # it may be another user's
            os.fchmod(file, mode)
        return file


class AdvisoryLocks:
    """Advisory locks of PostgreSQL, all on one connection of the pool, which is lent while there are any."""

    def __init__(self, pool: Any, guarded: Callable[..., Awaitable[Any]] | None) -> None:
        self._pool = pool
        # weakly: the checkpointer has these locks for as long as it is there, and would never be freed
        self._guarded = weakref.WeakMethod(guarded) if guarded else None
        """Runs a call of the checkpointer's: again while the server is away, with errors in our words."""
        self._connection: Any = None
        self._held: set[str] = set()
        self._turn = asyncio.Lock()

    async def try_lock(self, thread: str) -> bool:
        """Whether no other session has the lock."""
        guarded = self._guarded() if self._guarded else None
        trying = asyncio.ensure_future(guarded(lambda: self._try(thread)) if guarded else self._try(thread))
        try:
            return bool(await asyncio.shield(trying))
        except asyncio.CancelledError:
            await finish(self._unlock_if_granted(trying, thread))
            raise

    async def _unlock_if_granted(self, trying: asyncio.Future[bool], thread: str) -> None:
        """Of a caller that was cancelled before it heard of the lock."""
        await asyncio.wait([trying])
        if not trying.cancelled() and trying.exception() is None and trying.result():
            await self.unlock(thread)

    async def _try(self, thread: str) -> bool:
        async with self._turn:
            if self._connection is None:
                self._connection = await self._pool.getconn()
            try:
                if is_ours := await self._ask("SELECT pg_try_advisory_lock(%s)", thread):
                    self._held.add(thread)
            finally:
                await asyncio.shield(self._return_unused())
            return is_ours

    async def unlock(self, thread: str) -> None:
        """Give the lock back; a connection that broke has given it back already."""
        async with self._turn:
            self._held.discard(thread)
            try:
                if self._connection is not None:
                    await self._ask("SELECT pg_advisory_unlock(%s)", thread)
            except Exception as error:
                logger.warning("the lock of a thread could not be given back: %s", type(error).__name__)
            finally:
                await self._return_unused()

    async def _ask(self, statement: str, thread: str) -> bool:
        cursor = await self._connection.execute(statement, (_number_of(thread),))
        row = await cursor.fetchone()
        return bool(next(iter(row.values())) if isinstance(row, dict) else row[0])

    async def _return_unused(self) -> None:
        connection = self._connection
        if connection is None or (self._held and not connection.closed):
            return
        self._connection = None
        if not connection.closed:
            try:  # a lock may have been granted to a task that was cancelled before it heard of it
                await connection.execute("SELECT pg_advisory_unlock_all()")
            except Exception:
                await connection.close()
        await self._pool.putconn(connection)


_files: dict[Path, int] = {}
_files_guard = threading.Lock()
_advisory: weakref.WeakKeyDictionary[Any, AdvisoryLocks] = weakref.WeakKeyDictionary()
_advisory_guard = threading.Lock()


def _sqlite_path(checkpointer: Any) -> Path | None:
    path = getattr(checkpointer, "_path", None)  # of our GroupedSqliteSaver, whose driver may not be installed
    return path if isinstance(path, Path) else None


def _number_of(thread: str) -> int:
    """62 bits: so many that two threads of one database never share a lock."""
    return int.from_bytes(hashlib.sha256(thread.encode("utf-8", "surrogatepass")).digest()[:8], "big") >> 2
