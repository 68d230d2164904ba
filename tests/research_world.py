"""A research turn over a checkpointer that may be killed in the middle, and goes on; run as a program by its test.

Usage: research_world.py KIND PLACE LOG KILL_AT [serial]; PLACE is a file or a URL. KILL_AT is a query, or the number of
a write to the checkpointer; empty: the turn goes on.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.types import interrupt

from graphrag_agent import AgentContext, build_rag_graph
from graphrag_agent.persistence.checkpointers import open_checkpointer
from graphrag_agent.persistence.pruning import prune_thread
from graphrag_agent.testing import ScriptedChatModel, call
from tests.canned import CannedKnowledge, id_of
from tests.kill_points import kill_at as kill_at_write

QUESTIONS = ("alpha", "beta")
CONFIG: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
SETTLE_SECONDS = 0.4
"""What runs beside the killed call has ended and is written down by then."""

PAYLOAD = "PAYLOAD"
"""In every passage, and in no question and no answer."""


def passage_of(query: str) -> str:
    """What a search for the query finds."""
    return f"All about {query}. {PAYLOAD}"


def play(messages: list[BaseMessage], tools: tuple[str, ...]) -> Any:
    """The turn: two sub-questions and a sum side by side, then a report. A sub-question: two searches, an answer."""
    results = [message for message in messages if message.type == "tool"]
    if "research_question" in tools:
        cited = [f"All about {question} [{id_of(passage_of(f'{question} two'))}]." for question in QUESTIONS]
        asked = [call("research_question", question=question) for question in QUESTIONS]
        return " ".join(cited) if results else [*asked, call("add", first=1, second=2)]
    question = next(message.text for message in messages if message.type == "human")
    if len(results) < 2:
        return call("knowledge_search", query=f"{question} {'two' if results else 'one'}")
    return f"All about {question} [{id_of(passage_of(f'{question} two'))}]."


class LoggedKnowledge(CannedKnowledge):
    """Writes every search into a file; the process dies in the one for `kill_at`, and `pause_at` asks somebody."""

    def __init__(self, log: Path, kill_at: str = "", pause_at: str = "") -> None:
        super().__init__(lambda query: [passage_of(query)])
        self._log, self._kill_at, self._pause_at = log, kill_at, pause_at

    async def asearch(self, query: str, **options: Any) -> Any:
        told(self._log, query)
        if query == self._kill_at:
            await asyncio.sleep(SETTLE_SECONDS)
            os.kill(os.getpid(), signal.SIGKILL)
        if query == self._pause_at:
            interrupt("may I go on?")
        return await super().asearch(query, **options)


def told(log: Path, line: str) -> None:
    """A line more in the file."""
    with log.open("a") as lines:
        lines.write(f"{line}\n")


def research_graph(log: Path, saver: Any, kill_at: str = "", pause_at: str = "") -> Any:
    """The graph of the world."""

    def add(first: int, second: int) -> int:
        """The sum."""
        told(log, "add")
        return first + second

    return build_rag_graph(
        model=ScriptedChatModel(*[play] * 100),
        knowledge=LoggedKnowledge(log, kill_at, pause_at),
        tools=[add],
        mode="research",
        checkpointer=saver,
    )


async def main(kind: str, place: str, log: Path, kill_at: str, *options: str) -> None:
    context = AgentContext(parallel_tool_calls="serial" not in options)
    async with open_checkpointer(kind, Path(place), url=place if kind == "postgres" else "") as saver:  # type: ignore[arg-type]
        graph = research_graph(log, saver, kill_at)
        asked = {"messages": [{"role": "user", "content": "What of alpha and beta?"}]} if kill_at else None
        if kill_at.isdigit():
            kill_at_write(saver, int(kill_at))
        done = await graph.ainvoke(asked, CONFIG, durability="sync", context=context)
        await prune_thread(graph, saver, "t")
        left = await saver.rows().nested("t")  # type: ignore[attr-defined]
    print(done["messages"][-1].text)
    print(done["outcome"]["ending"], done["outcome"]["calls"]["run"], done["outcome"]["citations"])
    print(len(left), "nested rows")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), *sys.argv[4:]))
