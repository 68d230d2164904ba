"""LangGraph's SQLite checkpointer, writing what many turns have to say in one transaction.

The base pays three thread switches and one commit for each checkpoint and each task's writes, about thirty of them in a
turn of three rounds. Here what arrives while a transaction runs goes into the next one, and a caller still returns only
when his rows are committed. Tables and rows are the base's own, so either reads what the other wrote.
"""

from __future__ import annotations

import asyncio
import contextvars
import json
import sqlite3
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import aiosqlite
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from graphrag_agent.errors import CheckpointerError
from graphrag_agent.persistence.guarded import GuardedSaver
from graphrag_agent.persistence.sqlite_history import read_history
from graphrag_agent.persistence.sqlite_rows import SqliteRows

T = TypeVar("T")

LOCKED = "another process writes for long; try again, or end it"
FULL = "make room on the disk and ask again"
READ_ONLY = "make the file and its folder writable"

BUSY_SECONDS = 30.0
"""How long to wait for another process that writes; SQLite's own default of 5 s is short on a busy disk."""

_CHECKPOINT = ("thread_id", "checkpoint_ns", "checkpoint_id", "parent_checkpoint_id", "type", "checkpoint", "metadata")
_WRITE = ("thread_id", "checkpoint_ns", "checkpoint_id", "task_id", "task_path", "idx", "channel", "type", "value")


def _insert(table: str, columns: Sequence[str], otherwise: str) -> str:
    places = ", ".join("?" * len(columns))
    return f"INSERT OR {otherwise} INTO {table} ({', '.join(columns)}) VALUES ({places})"  # noqa: S608  # constants


_PUT_CHECKPOINT = _insert("checkpoints", _CHECKPOINT, "REPLACE")
_PUT_WRITES = _insert("writes", _WRITE, "IGNORE")
_PUT_SPECIAL_WRITES = _insert("writes", _WRITE, "REPLACE")
"""For errors, interrupts and the like, of which a task has one; a task's results are never overwritten."""


class _Waiting(NamedTuple):
    statement: str
    rows: list[tuple[Any, ...]]
    written: asyncio.Future[None]


class _Writer:
    """The connection for writing and what waits for it: one for a saver and its copies.

    LangGraph copies a saver for each graph where it must know the types it reads (LANGGRAPH_STRICT_MSGPACK).
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._waiting: list[_Waiting] = []
        self._writing: asyncio.Task[None] | None = None
        self._connection: sqlite3.Connection | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="checkpoints")

    async def write(self, statement: str, rows: list[tuple[Any, ...]]) -> None:
        """Return when the rows are committed, together with those of others who wait."""
        waiting = _Waiting(statement, rows, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        if self._writing is None:
            # a context of its own: it outlives the turn that happens to start it
            self._writing = asyncio.create_task(self._write_all(), context=contextvars.Context())
        await waiting.written

    async def run(self, call: Callable[[sqlite3.Connection], T]) -> T:
        """The call's result, given the connection, in its thread and one transaction."""

        def transact() -> T:
            with self._opened() as connection:
                return call(connection)

        return await self._in_thread(transact)

    async def aclose(self) -> None:
        """Wait for what is being written, and close the connection."""
        while self._writing is not None:
            await asyncio.wait([self._writing])
        if self._connection is not None:
            await self._in_thread(self._connection.close)
        self._thread.shutdown(wait=False)  # nothing is left to do, and joining would block the loop

    async def _write_all(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting, []
                try:
                    errors = await self._in_thread(self._commit_each, batch)
                except RuntimeError as closed:  # the thread has ended meanwhile
                    errors = [CheckpointerError(f"the checkpointer is closed: {closed}")] * len(batch)
                for waiting, error in zip(batch, errors, strict=True):
                    if waiting.written.done():  # the caller was cancelled
                        continue
                    if error is None:
                        waiting.written.set_result(None)
                    else:
                        waiting.written.set_exception(error)
        finally:
            self._writing = None

    async def _in_thread(self, call: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, call, *arguments)

    def _commit_each(self, batch: Sequence[_Waiting]) -> list[Exception | None]:
        """Together if it goes; else one by one, so that only who is at fault is told."""
        error = self._commit(batch)
        if error is None or len(batch) == 1:
            return [error] * len(batch)
        return [self._commit([waiting]) for waiting in batch]

    def _commit(self, batch: Sequence[_Waiting]) -> Exception | None:
        try:
            with self._opened() as connection:
                for statement, rows, _ in batch:
                    connection.executemany(statement, rows)
        except Exception as error:
            return error
        return None

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = _open_writer(self._path)
        return self._connection


class _Reader:
    """The connection for reading a thread's state: one for a saver and its copies.

    A state is read back to the last full copy of the thread, which may be thirty rows ago. Here its rows are stepped
    through in one go; the base switches to a thread for every few of them, or reads older copies along.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._saver: SqliteSaver | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="checkpoint-reads")

    async def read(self, serde: SerializerProtocol, call: Callable[[SqliteSaver], T]) -> T:
        """The call's result, given LangGraph's own saver for sync code, in its thread."""

        def in_thread() -> T:
            if self._saver is None:
                connection = sqlite3.connect(self._path, timeout=BUSY_SECONDS, check_same_thread=False)
                self._saver = SqliteSaver(connection)
            self._saver.serde = serde  # in which copies of a saver differ
            return call(self._saver)

        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, in_thread)
        except RuntimeError as error:  # the thread has ended
            raise CheckpointerError(f"the checkpointer is closed: {error}") from None

    async def aclose(self) -> None:
        """Wait for what is being read, and close the connection."""
        if self._saver is not None:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._saver.conn.close)
        self._thread.shutdown(wait=False)


class _Grouping(AsyncSqliteSaver):
    """An `AsyncSqliteSaver` with connections of its own for writing and for reading a state."""

    def __init__(self, connection: aiosqlite.Connection, path: Path, *, serde: SerializerProtocol) -> None:
        super().__init__(connection, serde=serde)
        self._path = path
        self._writer = _Writer(path)
        self._reader = _Reader(path)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint, or the thread's newest one."""
        return await self._reader.read(self.serde, lambda saver: saver.get_tuple(config))

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """What Delta channels are rebuilt from."""
        return await self._reader.read(self.serde, lambda saver: read_history(saver, config, channels))

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Save a checkpoint; its config."""
        place = config["configurable"]
        thread, namespace, id_ = place["thread_id"], place["checkpoint_ns"], checkpoint["id"]
        kind, encoded = self.serde.dumps_typed(checkpoint)
        told = json.dumps(get_checkpoint_metadata(config, metadata), ensure_ascii=False).encode("utf-8", "ignore")
        row = (str(thread), namespace, id_, place.get("checkpoint_id"), kind, encoded, told)
        await self._write(_PUT_CHECKPOINT, [row])
        return {"configurable": {"thread_id": thread, "checkpoint_ns": namespace, "checkpoint_id": id_}}

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Save what a task wrote."""
        place = config["configurable"]
        key = (str(place["thread_id"]), str(place["checkpoint_ns"]), str(place["checkpoint_id"]), task_id, task_path)
        is_special = all(channel in WRITES_IDX_MAP for channel, _ in writes)
        rows = [
            (*key, WRITES_IDX_MAP.get(channel, at), channel, *self.serde.dumps_typed(value))
            for at, (channel, value) in enumerate(writes)
        ]
        await self._write(_PUT_SPECIAL_WRITES if is_special else _PUT_WRITES, rows)

    async def in_writer(self, call: Callable[[sqlite3.Connection], T]) -> T:
        """The call's result, given the connection for writing, in its thread and one transaction."""
        await self.setup()
        return await self._writer.run(call)

    async def aclose(self) -> None:
        """Wait for what is being written and read, and close both connections."""
        await self._writer.aclose()
        await self._reader.aclose()

    async def _write(self, statement: str, rows: list[tuple[Any, ...]]) -> None:
        if not self.is_setup:
            await self.setup()
        await self._writer.write(statement, rows)


class GroupedSqliteSaver(GuardedSaver, _Grouping):
    """The checkpointer of our own for a SQLite file. Close it with `aclose`, then `connection`."""

    def rows(self) -> SqliteRows:
        """The rows of its threads."""
        return SqliteRows(self)

    async def in_writer(self, call: Callable[[sqlite3.Connection], T]) -> T:
        """The call's result, given the connection for writing, in its thread and one transaction."""
        return await self.guarded(lambda: super(GroupedSqliteSaver, self).in_writer(call))

    async def adelete_thread(self, thread_id: str) -> None:
        """Delete the thread; its bytes are gone from the file and its log."""
        await self.rows().erase([(str(thread_id), None)])

    def told(self, error: Exception) -> CheckpointerError | None:
        """SQLite's error in our words; one of a bad value stays what it is."""
        return _told(error, self._path)


@asynccontextmanager
async def open_sqlite(path: Path, *, serde: SerializerProtocol) -> AsyncIterator[GroupedSqliteSaver]:
    """The file's checkpointer, closed at the end. Raises CheckpointerError where the file can't be opened."""
    async with AsyncExitStack() as opened:
        try:
            saver = GroupedSqliteSaver(await opened.enter_async_context(_connected(path)), path, serde=serde)
            opened.push_async_callback(saver.aclose)
            await saver.setup()
        except sqlite3.Error as error:
            if (told := _told(error, path)) is None:
                raise
            raise told from error
        yield saver


@asynccontextmanager
async def _connected(path: Path) -> AsyncIterator[aiosqlite.Connection]:
    """A connection whose thread has ended when the block is left.

    Where aiosqlite itself can't open the file, or is cancelled there, it leaves its thread to tell an event loop that
    may be closed by then; so the file is opened beforehand, and nothing cancels the rest.
    """
    connecting = asyncio.create_task(_connect(path))
    try:
        yield await asyncio.shield(connecting)
    finally:
        while not connecting.done():  # who is cancelled a second time waits too
            with suppress(asyncio.CancelledError):
                await asyncio.wait([connecting])
        await (await connecting).close()


async def _connect(path: Path) -> aiosqlite.Connection:
    file = await asyncio.to_thread(sqlite3.connect, path, check_same_thread=False)
    return await aiosqlite.Connection(lambda: file, iter_chunk_size=64)


def _told(error: Exception, path: Path) -> CheckpointerError | None:
    if not isinstance(error, sqlite3.OperationalError) and type(error) is not sqlite3.DatabaseError:
        return None
    remedies = (("locked", LOCKED), ("full", FULL), ("disk I/O", FULL), ("readonly", READ_ONLY))
    remedy = next((remedy for word, remedy in remedies if word in str(error)), "see the file's rights and health")
    return CheckpointerError(f"threads in {str(path)!r}: {error}; {remedy}")


def _open_writer(path: Path) -> sqlite3.Connection:
    writer = sqlite3.connect(path, timeout=BUSY_SECONDS)
    # WAL (set by the base) and NORMAL survive a killed process; 27 fsyncs a turn become 0.3
    writer.execute("PRAGMA synchronous=NORMAL")
    writer.execute("PRAGMA secure_delete=ON")  # what is deleted or pruned is overwritten
    return writer
