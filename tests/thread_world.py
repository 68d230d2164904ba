"""A graph over a checkpointer, with a model that searches and answers; for tests of what is kept."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.base import BaseCheckpointSaver

from graphrag_agent import build_rag_graph
from graphrag_agent.persistence.checkpointers import open_checkpointer
from graphrag_agent.testing import ScriptedChatModel, call
from tests.canned import CannedKnowledge

Kind = Literal["sqlite", "postgres"]
WORDS = " ".join(f"word{n}" for n in range(75))
PAYLOAD = b"word7 word8"
"""In every tool result, and in nothing else."""


class World:
    """One thread at a time of a graph; each question makes `searches` searches of 3 KB."""

    def __init__(self, saver: BaseCheckpointSaver[Any], *, searches: int = 2) -> None:
        self.saver = saver
        self.searches = searches
        self.hangs_in: int | None = None
        self.hanging = asyncio.Event()
        self.thread = uuid.uuid4().hex
        self.metadata: dict[str, str] = {}
        model = ScriptedChatModel(*[_play(self)] * 10_000)
        self.graph: Any = build_rag_graph(model=model, knowledge=_Knowledge(self), checkpointer=saver)

    def config(self, checkpoint: str | None = None) -> Any:
        place = {"thread_id": self.thread, "checkpoint_ns": ""}
        place |= {"checkpoint_id": checkpoint} if checkpoint else {}
        return {"configurable": place, "metadata": self.metadata}

    async def ask(self, text: str, *, durability: str = "sync", head: str | None = None, id_: str | None = None) -> str:
        """The head of the turn that answers this question, after `head` where given."""
        message = {"role": "user", "content": text, **({"id": id_} if id_ else {})}
        await self.graph.ainvoke({"messages": [message]}, self.config(head), durability=durability)
        return await self.newest()

    async def die(self, text: str, *, durability: str, at: int) -> None:
        """A turn that is cancelled in its search number `at`, from 0."""
        self.hangs_in, self.hanging = at, asyncio.Event()
        asking = asyncio.create_task(self.ask(text, durability=durability))
        waiting = asyncio.create_task(self.hanging.wait())
        await asyncio.wait([asking, waiting], return_when=asyncio.FIRST_COMPLETED)
        asking.cancel()
        waiting.cancel()
        await asyncio.gather(asking, waiting, return_exceptions=True)
        self.hangs_in = None

    async def newest(self) -> str:
        state = await self.graph.aget_state(self.config())
        return str(state.config["configurable"]["checkpoint_id"])

    async def reads(self, head: str | None = None) -> dict[str, Any]:
        """All that a head's state holds, as plain values."""
        state = await self.graph.aget_state(self.config(head))
        values = {name: value for name, value in state.values.items() if value}
        for name in ("messages", "turn"):
            values[name] = [(m.id, m.type, m.text) for m in values.get(name) or []]
        return {"values": values, "next": state.next}


class _Knowledge(CannedKnowledge):
    """Passages of 3 KB in all; one search never ends where the world says so."""

    def __init__(self, world: World) -> None:
        super().__init__(lambda query: [f"{query} {n} {WORDS}"[:600] for n in range(5)])
        self._world = world

    async def asearch(self, query: str, **options: Any) -> Any:
        if self._world.hangs_in is not None:
            self._world.hangs_in -= 1
            if self._world.hangs_in < 0:
                self._world.hanging.set()
                await asyncio.Event().wait()
        return await super().asearch(query, **options)


def _play(world: World) -> Callable[[list[BaseMessage], Any], Any]:
    """Searches as often as the world says, then answers."""

    def reply(messages: list[BaseMessage], tools: Any) -> Any:
        seen = 0
        for message in reversed(messages):
            if message.type == "human":
                break
            seen += message.type == "tool"
        return call("knowledge_search", query=uuid.uuid4().hex) if seen < world.searches else f"after {seen} " * 40

    return reply


@asynccontextmanager
async def opened(kind: Kind, place: Path, url: str = "", **options: Any) -> AsyncIterator[World]:
    """A world over a checkpointer of that kind."""
    async with open_checkpointer(kind, place, url=url) as saver:
        yield World(saver, **options)
