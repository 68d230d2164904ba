"""One thread, turn after turn, in a process of its own: `python -m benchmarks.growth.turns NAME PLACE DURABILITY N`.

Prints a JSON object: `cpu_ms` of each turn, `bytes` after some of them. The same for every contender: three searches of
3 KB, one after the other, then an answer.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import BaseMessage
from langchain_core.tools import tool
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from graphrag_agent.agent import RagAgent
from graphrag_agent.documents import Chunk, Hit, assign_short_ids
from graphrag_agent.persistence.checkpointers import open_checkpointer
from graphrag_agent.retrieval.search.result import SearchResult
from graphrag_agent.testing import ScriptedChatModel, call

OURS, AGENT = "graphrag_agent", "create_agent"
SEARCHES = 3
PAYLOAD = "clause7 clause8"
"""In every search result, and in nothing else."""
_WORDS = " ".join(f"clause{number}" for number in range(70))
PASSAGES, PASSAGE_CHARACTERS = 5, 600
MEASUREMENTS = 20
"""Times that the size is taken."""

Ask = Callable[[str], Awaitable[object]]


async def run(contender: str, place: str, durability: str, turns: int) -> dict[str, Any]:
    """What the turns of one thread cost."""
    cpu: list[float] = []
    sizes: dict[int, int] = {}
    async with _opened(contender, place, durability) as ask:
        await ask("warm")
        for turn in range(1, turns + 1):
            began = time.process_time()
            await ask("thread")
            cpu.append(round(1000 * (time.process_time() - began), 3))
            if turn % max(1, turns // MEASUREMENTS) == 0:
                sizes[turn] = size_of(place)
    return {"cpu_ms": cpu, "bytes": sizes}


def size_of(place: str) -> int:
    """Bytes that the database takes; of SQLite with what is still in its log."""
    if place.startswith("postgresql:"):
        import psycopg

        with psycopg.connect(place) as connection:
            row = connection.execute("SELECT pg_database_size(current_database())").fetchone()
            return int(row[0]) if row else 0
    with closing(sqlite3.connect(place)) as file:
        pages, page_bytes = (file.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
        return int(pages) * int(page_bytes)


@asynccontextmanager
async def _opened(contender: str, place: str, durability: str) -> AsyncIterator[Ask]:
    is_postgres = place.startswith("postgresql:")
    model = ScriptedChatModel(*[_step] * 1_000_000)
    if contender == OURS:
        kind = "postgres" if is_postgres else "sqlite"
        file, url = (Path(), place) if is_postgres else (Path(place), "")
        async with open_checkpointer(kind, file, url=url) as saver:
            agent = RagAgent(model=model, knowledge=_Knowledge(), checkpointer=saver, durability=durability)  # type: ignore[arg-type]
            yield lambda thread: agent.aask("What holds?", thread=thread)
        return
    opened: Any = (
        AsyncPostgresSaver.from_conn_string(place) if is_postgres else AsyncSqliteSaver.from_conn_string(place)
    )
    async with opened as saver:
        if is_postgres:
            await saver.setup()
        graph = create_agent(model, [_search_tool()], checkpointer=saver)

        async def ask(thread: str) -> object:
            given: Any = {"messages": [{"role": "user", "content": "What holds?"}]}
            return await graph.ainvoke(given, {"configurable": {"thread_id": thread}}, durability=durability)  # type: ignore[call-overload]

        yield ask


def _step(messages: list[BaseMessage], tools: Sequence[str]) -> Any:
    """Searches as often as it should, then answers."""
    kinds = [message.type for message in messages]
    since = len(kinds) - kinds[::-1].index("human")
    done = kinds[since:].count("tool")
    return call("knowledge_search", query=uuid.uuid4().hex) if done < SEARCHES else "It holds for ten days. " * 10


def passages(query: str) -> list[str]:
    """The texts that a search finds; no two searches find the same."""
    return [f"{query} {place} {_WORDS}"[:PASSAGE_CHARACTERS] for place in range(PASSAGES)]


class _Knowledge:
    """A knowledge base that finds something new each time."""

    async def asearch(self, query: str, *, scope: object = None, top_k: int = 5, **_: object) -> SearchResult:
        texts = passages(query)[:top_k]
        chunks = [
            Chunk(
                id=f"{query}-{place}",
                document_id=query,
                tenant="default",
                collection="default",
                groups=(),
                source="terms.md",
                source_type="md",
                title="Terms",
                heading="",
                page=None,
                position=place,
                text=text,
                start=place * PASSAGE_CHARACTERS,
                end=place * PASSAGE_CHARACTERS + len(text),
            )
            for place, text in enumerate(texts)
        ]
        names = assign_short_ids([chunk.id for chunk in chunks])
        return SearchResult(query, tuple(Hit(names[chunk.id], chunk, 1.0) for chunk in chunks))


def _search_tool() -> Any:
    @tool
    async def knowledge_search(query: str) -> str:
        """Search the knowledge base."""
        return "\n\n".join(passages(query))

    return knowledge_search


if __name__ == "__main__":
    name, where, how, number = sys.argv[1:]
    print(json.dumps(asyncio.run(run(name, where, how, int(number)))))
