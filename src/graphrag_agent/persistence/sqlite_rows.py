"""The rows of threads in a SQLite file, in the tables of LangGraph's checkpointer."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
from collections.abc import Callable, Collection, Sequence
from typing import Any, Protocol, TypeVar

from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.types import _DeltaSnapshot

from graphrag_agent.errors import CheckpointerError
from graphrag_agent.identity import OWNER_KEY, PUBLIC_OWNER
from graphrag_agent.persistence.steps import Plan, Step, ThreadHead, WriteKey, is_finished, is_of_task

T = TypeVar("T")

LOG_SECONDS, TRY_SECONDS = 5.0, 0.1
"""How long to try to empty the log while somebody reads what was, and how often: a read takes milliseconds."""

_LINKS = "SELECT checkpoint_id, parent_checkpoint_id FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ''"
_STEP = """SELECT parent_checkpoint_id, type, checkpoint, metadata FROM checkpoints
    WHERE thread_id = ? AND checkpoint_ns = '' AND checkpoint_id = ?"""
_WRITE_KEYS = """SELECT checkpoint_id, channel, task_path, task_id, idx FROM writes
    WHERE thread_id = ? AND checkpoint_ns = '' AND checkpoint_id = ?"""
_NESTED = """SELECT checkpoint_ns, metadata, max(checkpoint_id) FROM checkpoints
    WHERE thread_id = ? AND checkpoint_ns > '' GROUP BY checkpoint_ns"""
_NESTED_WRITES = "SELECT DISTINCT checkpoint_ns, NULL, NULL FROM writes WHERE thread_id = ? AND checkpoint_ns > ''"
_DROP_NESTED = (
    "DELETE FROM writes WHERE thread_id = ? AND checkpoint_ns = ?",
    "DELETE FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ?",
)
_WRITTEN = """SELECT type, value FROM writes
    WHERE thread_id = ? AND checkpoint_ns = '' AND checkpoint_id = ? AND task_id = ? AND idx = ?"""
_DROP_CHANNEL = "DELETE FROM writes WHERE thread_id = ? AND checkpoint_ns = '' AND checkpoint_id = ? AND channel = ?"
_MOVE = """UPDATE writes SET checkpoint_id = ?, task_path = '', task_id = ?
    WHERE thread_id = ? AND checkpoint_ns = '' AND checkpoint_id = ? AND task_id = ? AND idx = ?"""
_ADOPT = """UPDATE checkpoints SET parent_checkpoint_id = ?
    WHERE thread_id = ? AND checkpoint_ns = '' AND checkpoint_id = ?"""
_REPLACE = """UPDATE checkpoints SET type = ?, checkpoint = ?
    WHERE thread_id = ? AND checkpoint_ns = '' AND checkpoint_id = ?"""
_DROP = (
    "DELETE FROM writes WHERE thread_id = ? AND checkpoint_ns = '' AND checkpoint_id = ?",
    "DELETE FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = '' AND checkpoint_id = ?",
)
_HEADS = """
    SELECT h.thread_id, h.checkpoint_id,
        coalesce(json_extract(CAST(c.metadata AS TEXT), :key), :public) AS owner
    FROM (
        SELECT thread_id, max(checkpoint_id) AS checkpoint_id FROM checkpoints
        WHERE checkpoint_ns = '' GROUP BY thread_id
    ) h
    JOIN checkpoints c ON c.thread_id = h.thread_id AND c.checkpoint_ns = '' AND c.checkpoint_id = h.checkpoint_id
    WHERE CAST(c.metadata AS TEXT) <> '{}' AND (:before = '' OR h.checkpoint_id < :before)
        AND (:owner IS NULL OR owner = :owner)
    ORDER BY h.checkpoint_id DESC LIMIT :limit"""
_HEAD = """
    SELECT thread_id, checkpoint_id, coalesce(json_extract(CAST(metadata AS TEXT), :key), :public)
    FROM checkpoints WHERE thread_id = :thread AND checkpoint_ns = '' AND CAST(metadata AS TEXT) <> '{}'
    ORDER BY checkpoint_id DESC LIMIT 1"""
_NEWEST = "SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ''"
_ERASE = ("DELETE FROM checkpoints WHERE thread_id = ?", "DELETE FROM writes WHERE thread_id = ?")


class Writing(Protocol):
    """What gives the rows a connection: the checkpointer."""

    serde: SerializerProtocol

    async def in_writer(self, call: Callable[[sqlite3.Connection], T]) -> T:
        """The call's result, in one transaction."""


class SqliteRows:
    """`steps.ThreadRows` over a SQLite checkpointer."""

    def __init__(self, saver: Writing) -> None:
        self._saver = saver

    async def links(self, thread: str) -> dict[str, str | None]:
        """Every checkpoint and its parent."""
        return await self._saver.in_writer(lambda db: dict(db.execute(_LINKS, (thread,)).fetchall()))

    async def heads(self, *, owner: str | None, limit: int, before: str) -> list[ThreadHead]:
        """The newest checkpoint of each thread, the newest first."""
        return await self._heads(_HEADS, owner=owner, limit=limit, before=before)

    async def head(self, thread: str) -> ThreadHead | None:
        """The thread's newest checkpoint."""
        return next(iter(await self._heads(_HEAD, thread=thread)), None)

    async def erase(self, threads: Sequence[tuple[str, str | None]]) -> list[str]:
        """Delete the threads, and what the log still holds of them."""

        def delete(db: sqlite3.Connection) -> list[str]:
            gone = []
            for thread, expected in threads:
                (newest,) = db.execute(_NEWEST, (thread,)).fetchone()
                if expected in (None, newest):
                    for statement in _ERASE:
                        db.execute(statement, (thread,))
                    gone.append(thread)
            return gone

        gone = await self._saver.in_writer(delete)
        if gone:
            await self._empty_log()
        return gone

    async def compact(self) -> None:
        """Write the file anew."""
        await self._saver.in_writer(lambda db: db.execute("VACUUM"))
        await self._empty_log()

    async def steps(self, thread: str, ids: Collection[str], channels: Collection[str]) -> dict[str, Step]:
        """These checkpoints."""
        found = await self._saver.in_writer(lambda db: [db.execute(_STEP, (thread, id_)).fetchone() for id_ in ids])
        return {id_: self._step(row, channels) for id_, row in zip(ids, found, strict=True)}

    async def write_keys(self, thread: str, ids: Collection[str], channels: Collection[str]) -> list[WriteKey]:
        """Where the writes of these channels after these checkpoints lie."""
        found = await self._saver.in_writer(
            lambda db: [row for id_ in ids for row in db.execute(_WRITE_KEYS, (thread, id_)).fetchall()]
        )
        return [key for key in map(WriteKey._make, found) if key.channel in channels]

    async def nested(self, thread: str) -> dict[str, str]:
        """Namespaces of graphs that ran inside tasks, and the checkpoints that the tasks began at."""

        def read(db: sqlite3.Connection) -> list[tuple[str, bytes | None, str | None]]:
            return [row for statement in (_NESTED_WRITES, _NESTED) for row in db.execute(statement, (thread,))]

        found = await self._saver.in_writer(read)
        return {name: _began_at(told) for name, told, _ in found if is_of_task(name)}

    async def written(self, thread: str, keys: Sequence[WriteKey]) -> list[Any]:
        """The values of these writes."""
        places = [(thread, key.checkpoint, key.task, key.place) for key in keys]
        rows = await self._saver.in_writer(lambda db: [db.execute(_WRITTEN, place).fetchone() for place in places])
        return [self._saver.serde.loads_typed(row) for row in rows]

    async def apply(self, thread: str, plan: Plan) -> None:
        """Carry the plan out, in one transaction."""
        await self._saver.in_writer(lambda db: self._apply(db, thread, plan))

    async def _empty_log(self) -> None:
        """Empty the write-ahead log, so that nothing deleted lives on in it. Between the tries others write.

        Raises CheckpointerError where somebody reads for long, as a backup does; the next deletion empties it then.
        """
        end = time.monotonic() + LOG_SECONDS
        while not await self._saver.in_writer(try_to_empty_log):
            if time.monotonic() > end:
                raise CheckpointerError(
                    "what was deleted remains in the log of the SQLite file, which is being read for long "
                    "(by a backup, say); delete or compact again when that has ended"
                )
            await asyncio.sleep(TRY_SECONDS)

    async def _heads(self, statement: str, **given: Any) -> list[ThreadHead]:
        values = {**given, "key": f"$.{OWNER_KEY}", "public": PUBLIC_OWNER}
        found = await self._saver.in_writer(lambda db: db.execute(statement, values).fetchall())
        return [ThreadHead._make(row) for row in found]

    def _step(self, row: tuple[Any, ...], channels: Collection[str]) -> Step:
        parent, kind, encoded, told = row
        values = self._saver.serde.loads_typed((kind, encoded)).get("channel_values") or {}
        metadata = json.loads(told) if told else {}
        number = int(metadata.get("step", -1))
        held = frozenset(values) & frozenset(channels)
        return Step(parent, number, is_finished(metadata, values), held, held, {})

    def _apply(self, db: sqlite3.Connection, thread: str, plan: Plan) -> None:
        db.executemany(_DROP_CHANNEL, [(thread, *place) for place in plan.dead])
        for move in plan.moves:  # by way of a name that no other write has
            key = move.key
            db.execute(_MOVE, (move.checkpoint, f"-{move.task}", thread, key.checkpoint, key.task, key.place))
        for move in plan.moves:
            key = move.key
            db.execute(_MOVE, (move.checkpoint, move.task, thread, move.checkpoint, f"-{move.task}", key.place))
        for id_, values in plan.values.items():
            self._hold(db, (thread, id_), values)
        db.executemany(_ADOPT, [(parent, thread, id_) for id_, parent in plan.parents.items()])
        for statement in _DROP:
            db.executemany(statement, [(thread, id_) for id_ in plan.gone])
        for statement in _DROP_NESTED:
            db.executemany(statement, [(thread, name) for name in plan.nested])

    def _hold(self, db: sqlite3.Connection, place: tuple[str, str], values: dict[str, Any]) -> None:
        _, *encoded, _ = db.execute(_STEP, place).fetchone()
        checkpoint = self._saver.serde.loads_typed(tuple(encoded))
        held = {name: _DeltaSnapshot(value) for name, value in values.items()}
        checkpoint = {**checkpoint, "channel_values": {**checkpoint["channel_values"], **held}}
        db.execute(_REPLACE, (*self._saver.serde.dumps_typed(checkpoint), *place))


def _began_at(metadata: bytes | None) -> str:
    parents = (json.loads(metadata) if metadata else {}).get("parents") or {}
    return str(parents.get("", ""))


def try_to_empty_log(db: sqlite3.Connection) -> bool:
    """Bring what the write-ahead log holds into the file and empty it; False, at once, where somebody reads it."""
    db.commit()
    (patience,) = db.execute("PRAGMA busy_timeout").fetchone()
    db.execute("PRAGMA busy_timeout=0")  # all who write would wait along
    try:
        (busy, *_rest) = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    finally:
        db.execute(f"PRAGMA busy_timeout={patience}")
    return not busy
