"""The rows of threads on a PostgreSQL server, in the tables of LangGraph's checkpointer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, LiteralString, Protocol, TypeVar

import psycopg
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from graphrag_agent.identity import OWNER_KEY, PUBLIC_OWNER
from graphrag_agent.persistence.steps import (
    START_CHANNEL,
    TASKS_CHANNEL,
    Plan,
    Step,
    ThreadHead,
    WriteKey,
    is_finished,
    is_of_task,
)

T = TypeVar("T")
Connection = psycopg.AsyncConnection[DictRow]

_LINKS = "SELECT checkpoint_id, parent_checkpoint_id FROM checkpoints WHERE thread_id = %s AND checkpoint_ns = ''"
_STEPS = """
    SELECT checkpoint_id, parent_checkpoint_id, metadata, checkpoint -> 'channel_values' AS inline,
        checkpoint -> 'channel_versions' AS versions, ARRAY(
        SELECT v.key FROM jsonb_each_text(checkpoint -> 'channel_versions') v
        JOIN checkpoint_blobs b ON b.thread_id = c.thread_id AND b.checkpoint_ns = c.checkpoint_ns
            AND b.channel = v.key AND b.version = v.value AND b.type <> 'empty'
        WHERE v.key = ANY(%s)
    ) AS stored, t.type AS tasks_type, t.blob AS tasks
    FROM checkpoints c LEFT JOIN checkpoint_blobs t ON t.thread_id = c.thread_id AND t.checkpoint_ns = c.checkpoint_ns
        AND t.channel = '__pregel_tasks' AND t.version = c.checkpoint -> 'channel_versions' ->> '__pregel_tasks'
    WHERE c.thread_id = %s AND c.checkpoint_ns = '' AND checkpoint_id = ANY(%s)"""
_WRITE_KEYS = """
    SELECT checkpoint_id, channel, task_path, task_id, idx FROM checkpoint_writes
    WHERE thread_id = %s AND checkpoint_ns = '' AND checkpoint_id = ANY(%s) AND channel = ANY(%s)"""
_NESTED = """
    SELECT DISTINCT checkpoint_ns, metadata -> 'parents' ->> '' AS began_at FROM checkpoints
    WHERE thread_id = %(thread)s AND checkpoint_ns > ''
    UNION ALL SELECT DISTINCT checkpoint_ns, NULL FROM checkpoint_writes
    WHERE thread_id = %(thread)s AND checkpoint_ns > ''"""
_DROP_NESTED = (
    "DELETE FROM checkpoint_writes WHERE thread_id = %s AND checkpoint_ns = ANY(%s)",
    "DELETE FROM checkpoint_blobs WHERE thread_id = %s AND checkpoint_ns = ANY(%s)",
    "DELETE FROM checkpoints WHERE thread_id = %s AND checkpoint_ns = ANY(%s)",
)
_WRITTEN = """
    SELECT type, blob FROM checkpoint_writes
    WHERE thread_id = %s AND checkpoint_ns = '' AND checkpoint_id = %s AND task_id = %s AND idx = %s"""
_DROP_CHANNEL = """
    DELETE FROM checkpoint_writes
    WHERE thread_id = %s AND checkpoint_ns = '' AND checkpoint_id = %s AND channel = %s"""
_MOVE = """
    UPDATE checkpoint_writes SET checkpoint_id = %s, task_path = '', task_id = %s
    WHERE thread_id = %s AND checkpoint_ns = '' AND checkpoint_id = %s AND task_id = %s AND idx = %s"""
_VERSIONS = """
    SELECT checkpoint_id, checkpoint -> 'channel_versions' AS versions FROM checkpoints
    WHERE thread_id = %s AND checkpoint_ns = '' AND checkpoint_id = ANY(%s)"""
_HOLD = """
    INSERT INTO checkpoint_blobs (thread_id, checkpoint_ns, channel, version, type, blob)
    VALUES (%s, '', %s, %s, %s, %s)
    ON CONFLICT (thread_id, checkpoint_ns, channel, version)
    DO UPDATE SET type = EXCLUDED.type, blob = EXCLUDED.blob"""
_MARK = """
    UPDATE checkpoints SET checkpoint = jsonb_set(
        checkpoint, '{channel_values}', coalesce(checkpoint -> 'channel_values', '{}') || %s)
    WHERE thread_id = %s AND checkpoint_ns = '' AND checkpoint_id = %s"""
_ADOPT = """
    UPDATE checkpoints SET parent_checkpoint_id = %s
    WHERE thread_id = %s AND checkpoint_ns = '' AND checkpoint_id = %s"""
_DROP = (
    "DELETE FROM checkpoint_writes WHERE thread_id = %s AND checkpoint_ns = '' AND checkpoint_id = ANY(%s)",
    "DELETE FROM checkpoints WHERE thread_id = %s AND checkpoint_ns = '' AND checkpoint_id = ANY(%s)",
)
_DROP_BLOB = """
    DELETE FROM checkpoint_blobs WHERE thread_id = %s AND checkpoint_ns = '' AND channel = %s AND version = %s"""

_HEADS = """
    SELECT h.thread_id, h.checkpoint_id, coalesce(c.metadata ->> %(key)s, %(public)s) AS owner
    FROM (
        SELECT thread_id, max(checkpoint_id) AS checkpoint_id FROM checkpoints
        WHERE checkpoint_ns = '' GROUP BY thread_id
    ) h
    JOIN checkpoints c ON c.thread_id = h.thread_id AND c.checkpoint_ns = '' AND c.checkpoint_id = h.checkpoint_id
    WHERE c.metadata <> '{}' AND (%(before)s = '' OR h.checkpoint_id < %(before)s)
        AND (%(owner)s::text IS NULL OR coalesce(c.metadata ->> %(key)s, %(public)s) = %(owner)s)
    ORDER BY h.checkpoint_id DESC LIMIT %(limit)s"""
_HEAD = """
    SELECT thread_id, checkpoint_id, coalesce(metadata ->> %(key)s, %(public)s)
    FROM checkpoints WHERE thread_id = %(thread)s AND checkpoint_ns = '' AND metadata <> '{}'
    ORDER BY checkpoint_id DESC LIMIT 1"""
_NEWEST = "SELECT max(checkpoint_id) AS newest FROM checkpoints WHERE thread_id = %s AND checkpoint_ns = ''"
_ERASE = (
    "DELETE FROM checkpoints WHERE thread_id = %s",
    "DELETE FROM checkpoint_blobs WHERE thread_id = %s",
    "DELETE FROM checkpoint_writes WHERE thread_id = %s",
)
_COMPACT = ("VACUUM FULL checkpoints", "VACUUM FULL checkpoint_blobs", "VACUUM FULL checkpoint_writes")


class Writing(Protocol):
    """What gives the rows a connection: the checkpointer."""

    serde: SerializerProtocol

    def connection(self) -> AbstractAsyncContextManager[Connection]:
        """A connection that commits each statement."""

    async def guarded(self, call: Callable[[], Awaitable[T]]) -> T:
        """The call's result, repeated while the server is away."""


class PostgresRows:
    """`steps.ThreadRows` over a PostgreSQL checkpointer."""

    def __init__(self, saver: Writing) -> None:
        self._saver = saver

    async def links(self, thread: str) -> dict[str, str | None]:
        """Every checkpoint and its parent."""
        found = await self._select(_LINKS, (thread,))
        return {row["checkpoint_id"]: row["parent_checkpoint_id"] for row in found}

    async def heads(self, *, owner: str | None, limit: int, before: str) -> list[ThreadHead]:
        """The newest checkpoint of each thread, the newest first."""
        return await self._heads(_HEADS, owner=owner, limit=limit, before=before)

    async def head(self, thread: str) -> ThreadHead | None:
        """The thread's newest checkpoint."""
        return next(iter(await self._heads(_HEAD, thread=thread)), None)

    async def erase(self, threads: Sequence[tuple[str, str | None]]) -> list[str]:
        """Delete the threads. The server keeps the bytes until `compact`."""

        async def delete() -> list[str]:
            gone = []
            async with self._saver.connection() as connection, connection.transaction():
                for thread, expected in threads:
                    row = await (await connection.execute(_NEWEST, (thread,))).fetchone()
                    if expected in (None, row and row["newest"]):
                        for statement in _ERASE:
                            await connection.execute(statement, (thread,))
                        gone.append(thread)
            return gone

        return await self._saver.guarded(delete)

    async def compact(self) -> None:
        """Write the tables anew."""

        async def vacuum() -> None:
            async with self._saver.connection() as connection:
                for statement in _COMPACT:
                    await connection.execute(statement)

        await self._saver.guarded(vacuum)

    async def steps(self, thread: str, ids: Collection[str], channels: Collection[str]) -> dict[str, Step]:
        """These checkpoints."""
        looked_at = [*channels, START_CHANNEL]
        found = await self._select(_STEPS, (looked_at, thread, list(ids)))
        return {row["checkpoint_id"]: self._step(row, channels) for row in found}

    async def write_keys(self, thread: str, ids: Collection[str], channels: Collection[str]) -> list[WriteKey]:
        """Where the writes of these channels after these checkpoints lie."""
        found = await self._select(_WRITE_KEYS, (thread, list(ids), list(channels)))
        return [WriteKey(*row.values()) for row in found]

    async def nested(self, thread: str) -> dict[str, str]:
        """Namespaces of graphs that ran inside tasks, and the checkpoints that the tasks began at."""
        found = await self._select(_NESTED, {"thread": thread})
        began: dict[str, str] = {}
        for row in filter(lambda row: is_of_task(row["checkpoint_ns"]), found):
            name = row["checkpoint_ns"]
            began[name] = row["began_at"] or began.get(name, "")
        return began

    async def written(self, thread: str, keys: Sequence[WriteKey]) -> list[Any]:
        """The values of these writes."""
        values = []
        for key in keys:
            (row,) = await self._select(_WRITTEN, (thread, key.checkpoint, key.task, key.place))
            values.append(self._saver.serde.loads_typed((row["type"], row["blob"])))
        return values

    async def apply(self, thread: str, plan: Plan) -> None:
        """Carry the plan out, in one transaction."""

        async def change() -> None:
            async with self._saver.connection() as connection, connection.transaction():
                await self._apply(connection, thread, plan)

        await self._saver.guarded(change)

    async def _heads(self, statement: LiteralString, **given: Any) -> list[ThreadHead]:
        found = await self._select(statement, {**given, "key": OWNER_KEY, "public": PUBLIC_OWNER})
        return [ThreadHead(*row.values()) for row in found]

    async def _select(self, statement: LiteralString, values: Sequence[Any] | Mapping[str, Any]) -> list[DictRow]:
        async def read() -> list[DictRow]:
            async with self._saver.connection() as connection:
                return await (await connection.execute(statement, values)).fetchall()

        return await self._saver.guarded(read)

    def _step(self, row: Mapping[str, Any], channels: Collection[str]) -> Step:
        inline, stored = row["inline"] or {}, frozenset(row["stored"])
        # what is to be sent is kept once it was sent, as an empty list
        sends = self._saver.serde.loads_typed((row["tasks_type"], row["tasks"])) if row["tasks"] else None
        values = {**inline, **dict.fromkeys(stored, True), TASKS_CHANNEL: sends}
        number = int(row["metadata"].get("step", -1))
        held = stored & frozenset(channels)
        versions = {name: row["versions"].get(name, "") for name in channels}
        is_end = is_finished(row["metadata"], values)
        return Step(row["parent_checkpoint_id"], number, is_end, held, held & frozenset(inline), versions)

    async def _apply(self, db: Connection, thread: str, plan: Plan) -> None:
        versions = await _versions(db, thread, plan)
        async with db.cursor() as cursor:
            if plan.dead:
                await cursor.executemany(_DROP_CHANNEL, [(thread, *place) for place in plan.dead])
            # by way of a name that no other write has
            on_the_way = [
                (move.checkpoint, f"-{move.task}", thread, move.key.checkpoint, move.key.task, move.key.place)
                for move in plan.moves
            ]
            arrived = [
                (move.checkpoint, move.task, thread, move.checkpoint, f"-{move.task}", move.key.place)
                for move in plan.moves
            ]
            if plan.moves:
                await cursor.executemany(_MOVE, [*on_the_way, *arrived])
            for id_, values in plan.values.items():
                for channel, value in values.items():
                    encoded = self._saver.serde.dumps_typed(_DeltaSnapshot(value))
                    await cursor.execute(_HOLD, (thread, channel, versions[id_][channel], *encoded))
                await cursor.execute(_MARK, (Jsonb(dict.fromkeys(values, True)), thread, id_))
            await cursor.executemany(_ADOPT, [(parent, thread, id_) for id_, parent in plan.parents.items()])
            for statement in _DROP:
                await cursor.execute(statement, (thread, plan.gone))
            for statement in _DROP_NESTED if plan.nested else ():
                await cursor.execute(statement, (thread, plan.nested))
            if unused := _unused(versions, plan):
                await cursor.executemany(_DROP_BLOB, [(thread, *blob) for blob in unused])


async def _versions(db: Connection, thread: str, plan: Plan) -> dict[str, dict[str, str]]:
    ids = [*plan.gone, *plan.parents, *plan.parents.values()]
    found = await (await db.execute(_VERSIONS, (thread, ids))).fetchall()
    return {row["checkpoint_id"]: row["versions"] for row in found}


def _unused(versions: Mapping[str, Mapping[str, str]], plan: Plan) -> list[tuple[str, str]]:
    """Values that only the removed checkpoints had. A version is one value's, and lives on in an unbroken line."""
    of_gone = {blob for id_ in plan.gone for blob in versions[id_].items()}
    kept = {*plan.parents, *plan.parents.values()}
    return sorted(of_gone - {blob for id_ in kept for blob in versions[id_].items()})
