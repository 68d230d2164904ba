"""LangGraph's PostgreSQL checkpointer over a pool: turns don't wait for each other, and a restart is outlived."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, nullcontext
from typing import Any, TypeVar

import psycopg
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.serde.base import SerializerProtocol
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import DictRow, dict_row
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from graphrag_agent.errors import CheckpointerError, SettingsError
from graphrag_agent.persistence.guarded import GuardedSaver
from graphrag_agent.persistence.postgres_rows import PostgresRows

T = TypeVar("T")
Connection = psycopg.AsyncConnection[DictRow]
Pool = AsyncConnectionPool[Connection]

MAX_CONNECTIONS = 10
"""A turn holds a connection for milliseconds at a time; a server allows 100 by default."""

CONNECT_SECONDS = 10.0
PATIENCE_SECONDS = 8.0
"""How long calls are repeated while the server is away: a restart takes some seconds."""

PAUSE_SECONDS = 0.2

SETUP_LOCK = 0x67726167
"""Advisory lock under which the tables are made: "grag"."""


class PooledPostgresSaver(GuardedSaver, AsyncPostgresSaver):
    """The checkpointer of our own for a PostgreSQL server. All its calls may be repeated, so they are."""

    def __init__(self, pool: Pool, place: str, *, serde: SerializerProtocol) -> None:
        super().__init__(pool, serde=serde)
        self._pool, self._place = pool, place
        # each call has a connection of its own, and so need not wait for the others
        self.lock = nullcontext()  # type: ignore[assignment]

    def rows(self) -> PostgresRows:
        """The rows of its threads."""
        return PostgresRows(self)

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """A connection of the pool, committing each statement unless told otherwise."""
        async with self._pool.connection() as connection:
            yield connection

    async def guarded(self, call: Callable[[], Awaitable[T]]) -> T:
        """As the base; while the server is away the call is repeated for some seconds."""
        self.check_loop()
        ends = self.loop.time() + PATIENCE_SECONDS
        while True:
            try:
                return await super().guarded(call)
            except CheckpointerError as error:
                if not is_away(error.__cause__) or self.loop.time() >= ends:
                    raise
            await asyncio.sleep(PAUSE_SECONDS)

    def told(self, error: Exception) -> CheckpointerError | None:
        """The server's error in our words, without the address's password."""
        if isinstance(error, PoolTimeout):
            return CheckpointerError(f"PostgreSQL at {self._place} gives no connection; see whether it runs")
        if not isinstance(error, psycopg.OperationalError):
            return None
        reason = " ".join(str(error).split()) or type(error).__name__
        remedy = "make room on its disk" if error.sqlstate == "53100" else "see whether it runs, then ask again"
        return CheckpointerError(f"PostgreSQL at {self._place}: {reason}; {remedy}")


def is_away(error: BaseException | None) -> bool:
    """Whether the server restarts or the connection broke: classes 08 and 57P, or an error without a code."""
    if not isinstance(error, psycopg.OperationalError) or isinstance(error, PoolTimeout):
        return False
    return error.sqlstate is None or error.sqlstate.startswith(("08", "57P"))


@asynccontextmanager
async def open_postgres(url: str, *, serde: SerializerProtocol) -> AsyncIterator[PooledPostgresSaver]:
    """A checkpointer on the server, its tables made if need be; the pool is closed at the end of the block.

    Raises SettingsError for a URL that can't be read, CheckpointerError for a server that can't be reached. Neither
    shows the password.
    """
    place = _place(url)
    kwargs: dict[str, Any] = {
        "autocommit": True,
        "prepare_threshold": 0,
        "row_factory": dict_row,
        "connect_timeout": int(CONNECT_SECONDS),
    }
    pool: Pool = AsyncConnectionPool(
        url,
        kwargs=kwargs,
        min_size=0,
        max_size=MAX_CONNECTIONS,
        open=False,
        timeout=CONNECT_SECONDS,
        name="checkpoints",
    )
    try:
        await set_up(url, kwargs, serde)
    except psycopg.OperationalError as error:
        reason = " ".join(str(error).split())
        raise CheckpointerError(f"PostgreSQL at {place}: {reason}; see GRAPHRAG_DATABASE_URL and the server") from None
    async with pool:
        yield PooledPostgresSaver(pool, place, serde=serde)


async def set_up(url: str, kwargs: dict[str, Any], serde: SerializerProtocol) -> None:
    """Make the tables, or bring them up to date, one process at a time.

    The lock is tried again and again: a statement that waits for it would hold up the indexes that its owner makes.
    """
    async with await psycopg.AsyncConnection.connect(url, **kwargs) as connection:
        while True:
            answer = await connection.execute("SELECT pg_try_advisory_lock(%s) AS is_ours", (SETUP_LOCK,))
            row: Any = await answer.fetchone()
            if row["is_ours"]:
                break
            await asyncio.sleep(PAUSE_SECONDS)
        await AsyncPostgresSaver(connection, serde=serde).setup()  # closing ends the lock


def _place(url: str) -> str:
    """Host, port and database of the URL, for messages."""
    try:
        if not url.startswith(("postgresql://", "postgres://")):
            raise ValueError
        parts = conninfo_to_dict(url)
    except (psycopg.Error, ValueError):
        raise SettingsError(
            "GRAPHRAG_DATABASE_URL can't be read; it looks like postgresql://user:password@host:5432/database"
        ) from None
    return f"{parts.get('host', 'localhost')}:{parts.get('port', 5432)}/{parts.get('dbname', '')}"
