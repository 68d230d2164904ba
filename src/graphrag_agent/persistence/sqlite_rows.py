"""The rows of threads in a SQLite file, in the tables of LangGraph's checkpointer."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection, Sequence
from typing import Any, Protocol, TypeVar

from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.types import _DeltaSnapshot

from graphrag_agent.persistence.steps import Plan, Step, WriteKey, is_finished

T = TypeVar("T")

_LINKS = "SELECT checkpoint_id, parent_checkpoint_id FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ''"
_STEP = """SELECT parent_checkpoint_id, type, checkpoint, metadata FROM checkpoints
    WHERE thread_id = ? AND checkpoint_ns = '' AND checkpoint_id = ?"""
_WRITE_KEYS = """SELECT checkpoint_id, channel, task_path, task_id, idx FROM writes
    WHERE thread_id = ? AND checkpoint_ns = '' AND checkpoint_id = ?"""
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

    async def written(self, thread: str, keys: Sequence[WriteKey]) -> list[Any]:
        """The values of these writes."""
        places = [(thread, key.checkpoint, key.task, key.place) for key in keys]
        rows = await self._saver.in_writer(lambda db: [db.execute(_WRITTEN, place).fetchone() for place in places])
        return [self._saver.serde.loads_typed(row) for row in rows]

    async def apply(self, thread: str, plan: Plan) -> None:
        """Carry the plan out, in one transaction."""
        await self._saver.in_writer(lambda db: self._apply(db, thread, plan))

    def _step(self, row: tuple[Any, ...], channels: Collection[str]) -> Step:
        parent, kind, encoded, told = row
        values = self._saver.serde.loads_typed((kind, encoded)).get("channel_values") or {}
        metadata = json.loads(told) if told else {}
        number = int(metadata.get("step", -1))
        return Step(parent, number, is_finished(metadata, values), frozenset(values) & frozenset(channels))

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

    def _hold(self, db: sqlite3.Connection, place: tuple[str, str], values: dict[str, Any]) -> None:
        _, *encoded, _ = db.execute(_STEP, place).fetchone()
        checkpoint = self._saver.serde.loads_typed(tuple(encoded))
        held = {name: _DeltaSnapshot(value) for name, value in values.items()}
        checkpoint = {**checkpoint, "channel_values": {**checkpoint["channel_values"], **held}}
        db.execute(_REPLACE, (*self._saver.serde.dumps_typed(checkpoint), *place))
