"""All threads that the settings name, for whoever runs the system: the work of `graphrag-agent threads`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver

from graphrag_agent.assembly import RagGraph, build_rag_graph
from graphrag_agent.conversation.erasing import delete_threads, delete_threads_of, expire_threads
from graphrag_agent.errors import SettingsError, ThreadError
from graphrag_agent.knowledge_opening import home_of
from graphrag_agent.persistence import threads as kept
from graphrag_agent.persistence.checkpointers import checkpointer_from
from graphrag_agent.settings import OFFLINE, Settings


@dataclass(frozen=True, slots=True)
class AllThreads:
    """Threads of all users, but where one is named."""

    graph: RagGraph
    saver: BaseCheckpointSaver[Any]

    async def page(self, *, owner: str | None, limit: int, after: str) -> kept.ThreadPage:
        """So many, the last used first."""
        return await kept.list_threads(self.graph, self.saver, owner=owner, limit=limit, after=after)

    async def export(self, thread: str) -> dict[str, Any]:
        """Every branch of it, as JSON."""
        return await kept.export_thread(self.graph, self.saver, thread, owner=None)

    async def delete(self, threads: Sequence[str]) -> list[str]:
        """The ids of those that were there. One on which a turn runs is refused."""
        return await delete_threads(self.saver, threads, owner=None)

    async def delete_of(self, owner: str) -> list[str]:
        """All of one owner."""
        return await delete_threads_of(self.saver, owner)

    async def expire(self, *, older_than: timedelta | None, keep: int | None) -> list[str]:
        """Those last used longer ago, or all but the last used."""
        return await expire_threads(self.saver, older_than=older_than, keep=keep)

    async def compact(self) -> None:
        """Give the room of what was deleted back."""
        await kept.compact(self.saver)


@asynccontextmanager
async def open_threads(settings: Settings) -> AsyncIterator[AllThreads]:
    """Raises SettingsError where threads are kept within one process only, ThreadError where there are none."""
    folder = home_of(settings)
    if settings.checkpointer == "memory":
        raise SettingsError("GRAPHRAG_CHECKPOINTER='memory' keeps threads within one process only")
    if settings.checkpointer == "sqlite" and not (folder / "threads.sqlite").is_file():
        raise ThreadError(f"there are no threads in {str(folder)!r}")
    async with checkpointer_from(settings, folder) as saver:
        yield AllThreads(build_rag_graph(model=OFFLINE, checkpointer=saver), saver)
