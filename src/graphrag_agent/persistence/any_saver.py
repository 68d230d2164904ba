"""Threads of a checkpointer of another make, memory's among them, by what every one can do: slow, but enough."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver

from graphrag_agent.identity import OWNER_KEY, PUBLIC_OWNER
from graphrag_agent.persistence.steps import ThreadHead


class AnySaver:
    """`steps.ThreadIndex` over any checkpointer."""

    def __init__(self, saver: BaseCheckpointSaver[Any]) -> None:
        self._saver = saver

    async def heads(self, *, owner: str | None, limit: int, before: str) -> list[ThreadHead]:
        """The newest checkpoint of each thread, the newest first."""
        newest: dict[str, ThreadHead] = {}
        async for item in self._saver.alist(None):
            place = item.config["configurable"]
            head = ThreadHead(place["thread_id"], place["checkpoint_id"], _owner(item.metadata))
            if not place.get("checkpoint_ns") and item.metadata:
                known = newest.get(head.thread)
                newest[head.thread] = max(known, head, key=_age) if known else head
        found = sorted(newest.values(), key=_age, reverse=True)
        return [head for head in found if owner in (None, head.owner) and (not before or head.checkpoint < before)][
            :limit
        ]

    async def head(self, thread: str) -> ThreadHead | None:
        """The thread's newest checkpoint."""
        item = await self._saver.aget_tuple({"configurable": {"thread_id": thread, "checkpoint_ns": ""}})
        if item is None or not item.metadata:
            return None
        return ThreadHead(thread, item.checkpoint["id"], _owner(item.metadata))

    async def links(self, thread: str) -> dict[str, str | None]:
        """Every checkpoint of the thread's own graph and its parent."""
        found: dict[str, str | None] = {}
        async for item in self._saver.alist({"configurable": {"thread_id": thread, "checkpoint_ns": ""}}):
            parent = (item.parent_config or {}).get("configurable", {}).get("checkpoint_id")
            found[item.checkpoint["id"]] = parent
        return found

    async def erase(self, threads: Sequence[tuple[str, str | None]]) -> list[str]:
        """Delete the threads, unless one has got another newest checkpoint than the one given."""
        gone = []
        for thread, newest in threads:
            head = await self.head(thread)
            if newest in (None, head and head.checkpoint):
                await self._saver.adelete_thread(thread)
                gone.append(thread)
        return gone

    async def compact(self) -> None:
        """Nothing to do."""


def _age(head: ThreadHead) -> str:
    return head.checkpoint


def _owner(metadata: Any) -> str:
    return str(metadata.get(OWNER_KEY, PUBLIC_OWNER))
