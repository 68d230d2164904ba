"""Where threads are kept: memory, or a SQLite file."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver

from graphrag_agent.errors import MissingExtraError
from graphrag_agent.persistence.kept_snapshots import build_serializer

ROWS_AT_ONCE = 4
"""The saver reads a thread's checkpoints back to the last full copy of its messages. aiosqlite's 64 rows at once would
bring older copies along, each as large as the thread."""


@asynccontextmanager
async def open_checkpointer(kind: Literal["memory", "sqlite"], path: Path) -> AsyncIterator[BaseCheckpointSaver[Any]]:
    """A checkpointer that is closed at the end of the block; `path` is the SQLite file, made if need be.

    Raises MissingExtraError where the SQLite checkpointer is not installed.
    """
    if kind == "memory":
        yield InMemorySaver()
        return
    try:
        import aiosqlite

        from graphrag_agent.persistence.grouped_sqlite import GroupedSqliteSaver
    except ImportError:
        raise MissingExtraError("the checkpointer 'sqlite'", "sqlite") from None
    async with aiosqlite.connect(path, iter_chunk_size=ROWS_AT_ONCE) as connection:
        saver = GroupedSqliteSaver(connection, path, serde=build_serializer())
        await saver.setup()
        try:
            yield saver
        finally:
            await saver.aclose()
