"""Where threads are kept: memory, a SQLite file, or a PostgreSQL server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver

from graphrag_agent.errors import MissingExtraError, SettingsError
from graphrag_agent.persistence.kept_messages import build_serializer
from graphrag_agent.settings import Settings
from graphrag_agent.sync_edge import run_sync

Kind = Literal["memory", "sqlite", "postgres"]


@asynccontextmanager
async def open_checkpointer(kind: Kind, path: Path, *, url: str = "") -> AsyncIterator[BaseCheckpointSaver[Any]]:
    """A checkpointer for this event loop that is closed at the end of the block.

    `path` is the SQLite file, made if need be; `url` the PostgreSQL database, whose tables are made if need be.
    Raises MissingExtraError where the driver is not installed, SettingsError for a bad URL, CheckpointerError where the
    database can't be opened.
    """
    if kind == "memory":
        yield InMemorySaver(serde=build_serializer())
    elif kind == "sqlite":
        async with _sqlite(path) as saver:
            yield saver
    else:
        async with _postgres(url) as saver:
            yield saver


@asynccontextmanager
async def checkpointer_from(settings: Settings, folder: Path) -> AsyncIterator[BaseCheckpointSaver[Any]]:
    """The checkpointer that the settings name; a SQLite file is `threads.sqlite` in the folder."""
    url = settings.database_url.get_secret_value()
    async with open_checkpointer(settings.checkpointer, folder / "threads.sqlite", url=url) as saver:
        yield saver


@contextmanager
def open_checkpointer_sync(kind: Kind, path: Path, *, url: str = "") -> Iterator[BaseCheckpointSaver[Any]]:
    """`open_checkpointer` for sync code: `graph.invoke` and `RagAgent.ask`, not their async twins.

    It lives in the background event loop in which the package's sync methods run.
    """
    opened = open_checkpointer(kind, path, url=url)
    saver = run_sync(opened.__aenter__())
    try:
        yield saver
    finally:
        run_sync(opened.__aexit__(None, None, None))


@asynccontextmanager
async def _sqlite(path: Path) -> AsyncIterator[BaseCheckpointSaver[Any]]:
    grouped = await asyncio.to_thread(_with_extra, "grouped_sqlite", "sqlite")
    path = await asyncio.to_thread(path.resolve)  # one file has one name, by which its threads are locked
    async with grouped.open_sqlite(path, serde=build_serializer()) as saver:
        yield saver


@asynccontextmanager
async def _postgres(url: str) -> AsyncIterator[BaseCheckpointSaver[Any]]:
    if not url:
        raise SettingsError(
            "the checkpointer 'postgres' needs GRAPHRAG_DATABASE_URL: postgresql://user:password@host/database"
        )
    pooled = await asyncio.to_thread(_with_extra, "pooled_postgres", "postgres")
    async with pooled.open_postgres(url, serde=build_serializer()) as saver:
        yield saver


def _with_extra(module: str, extra: str) -> Any:
    """The module; importing a driver reads files, so not on an event loop."""
    try:
        return import_module(f"{__package__}.{module}")
    except ImportError:
        raise MissingExtraError(f"the checkpointer {extra!r}", extra) from None
