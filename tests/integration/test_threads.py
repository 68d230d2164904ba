"""What a thread keeps, what a kill leaves, what a long thread costs."""

import signal
import sqlite3
import statistics
import subprocess
import sys
import time
import uuid
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import BaseMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver

from graphrag_agent import build_rag_graph
from graphrag_agent.testing import ScriptedChatModel, call
from tests.canned import CannedKnowledge, id_of

THREAD = {"configurable": {"thread_id": "t"}}
WORDS = " ".join(f"word{n}" for n in range(75))


def ask(question: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": question}]}


def search(query: str) -> Any:
    return call("knowledge_search", query=query)


def saver(path: Path) -> SqliteSaver:
    connection = sqlite3.connect(path, check_same_thread=False)
    connection.execute("PRAGMA synchronous=NORMAL")
    return SqliteSaver(connection)


def test_a_thread_keeps_questions_and_answers_only():
    with ScriptedChatModel(search("a"), "first", search("b"), "second") as model:
        graph = build_rag_graph(model=model, knowledge=CannedKnowledge(), checkpointer=InMemorySaver())
        graph.invoke(ask("one?"), THREAD)
        graph.invoke(ask("two?"), THREAD)
    state = graph.get_state(THREAD).values
    assert [message.text for message in state["messages"]] == ["one?", "first", "two?", "second"]
    assert not any(state.get(channel) for channel in ("turn", "ledger", "budget", "ending"))
    assert [message.text for message in model.requests[2].messages[1:]] == ["one?", "first", "two?"]


def test_an_id_of_an_earlier_turn_is_no_evidence_of_this_one():
    earlier = id_of("All about a.")
    with ScriptedChatModel(search("a"), f"A [{earlier}].", f"Again [{earlier}].") as model:
        graph = build_rag_graph(model=model, knowledge=CannedKnowledge(), checkpointer=InMemorySaver())
        graph.invoke(ask("one?"), THREAD)
        second = graph.invoke(ask("again?"), THREAD)
    assert second["messages"][-1].text == "Again."


CHILD = """
import os, signal, sys
from pathlib import Path
from graphrag_agent import build_rag_graph
from tests.integration.test_threads import THREAD, ask, saver, script
from tests.canned import CannedKnowledge

path, mode = Path(sys.argv[1]), sys.argv[2]
log = path.with_suffix(".log").open("a", buffering=1)

def find(query):
    log.write(f"search {query}\\n")
    if query == "second" and mode == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    return [f"All about {query}."]

graph = build_rag_graph(model=script(log), knowledge=CannedKnowledge(find), checkpointer=saver(path))
out = graph.invoke(None if mode == "resume" else ask(mode), THREAD, durability="sync")
print([message.text for message in out["messages"]])
"""


def script(log: Any) -> ScriptedChatModel:
    """Searches "first", then "second", then answers with how many results it sees; logs each call."""

    def play(messages: list[BaseMessage], tools: tuple[str, ...]) -> Any:
        seen = sum(isinstance(message, ToolMessage) for message in messages)
        log.write(f"model after {seen}\n")
        return [search("first"), search("second"), f"saw {seen} results"][seen]

    return ScriptedChatModel(*[play] * 9)


def child(path: Path, mode: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "ignore", "-c", CHILD, str(path), mode]
    return subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2])


def log_of(path: Path) -> list[str]:
    return path.with_suffix(".log").read_text().splitlines()


def test_a_killed_turn_is_resumed_without_repeating_a_finished_step(tmp_path: Path):
    path = tmp_path / "t.sqlite"
    assert child(path, "die").returncode == -signal.SIGKILL
    resumed = child(path, "resume")
    assert resumed.stdout.strip() == "['die', 'saw 2 results']", resumed.stderr
    assert log_of(path) == [
        "model after 0",
        "search first",
        "model after 1",
        "search second",  # killed here, so this one step is run again
        "search second",
        "model after 2",
    ]


def test_a_new_question_after_a_kill_sees_nothing_of_the_killed_turn(tmp_path: Path):
    path = tmp_path / "t.sqlite"
    child(path, "die")
    with ScriptedChatModel(search("first"), "fresh") as model:
        knowledge, checkpointer = CannedKnowledge(), saver(path)
        with closing(checkpointer.conn):
            graph = build_rag_graph(model=model, knowledge=knowledge, checkpointer=checkpointer)
            out = graph.invoke(ask("new?"), THREAD)
    assert knowledge.queries == ["first"], "the killed turn's ledger is gone"
    assert [m.type for m in model.requests[0].messages] == ["system", "human", "ai", "human"]
    assert "got no answer" in model.requests[0].messages[2].text
    assert out["outcome"]["calls"] == {"run": 1, "reused": 0, "refused": 0}
    assert [m.text for m in out["messages"]] == ["die", "new?", "fresh"]
    assert out["messages"][0].additional_kwargs["ending"] == "cancelled"


def long_thread(path: Path, durability: Any, turns: int) -> tuple[bytes, list[float], Any]:
    """What is stored, CPU seconds a turn, with three searches of 3 KB each, and the messages."""

    def play(messages: list[BaseMessage], tools: tuple[str, ...]) -> Any:
        seen = 0
        for message in reversed(messages):
            if message.type == "human":
                break
            seen += message.type == "tool"
        return "A sentence of an answer of some length. " * 8 if seen == 3 else search(uuid.uuid4().hex)

    knowledge = CannedKnowledge(lambda query: [f"{query} {n} {WORDS}"[:600] for n in range(5)])
    checkpointer = saver(path)
    graph = build_rag_graph(
        model=ScriptedChatModel(*[play] * 4 * turns), knowledge=knowledge, checkpointer=checkpointer
    )
    spent = []
    for n in range(turns):
        began = time.process_time()
        graph.invoke(ask(f"question {n}?"), THREAD, durability=durability)
        spent.append(time.process_time() - began)
    messages = graph.get_state(THREAD).values["messages"]
    with closing(checkpointer.conn) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        columns = (("writes", "value"), ("checkpoints", "checkpoint"))
        rows = [row for table, column in columns for row in connection.execute(f"SELECT {column} FROM {table}")]
    return b"".join(row[0] or b"" for row in rows), spent, messages


@pytest.mark.parametrize(("durability", "limit_mb"), [("sync", 3.2), ("exit", 0.5)])
def test_fifty_turns_stay_small_and_cost_no_more_than_the_first(tmp_path: Path, durability: str, limit_mb: float):
    path = tmp_path / "t.sqlite"
    stored, spent, messages = long_thread(path, durability, 50)
    assert path.stat().st_size / 1e6 <= limit_mb
    assert [message.type for message in messages] == ["human", "ai"] * 50
    if durability == "exit":
        assert b"word7 word8" not in stored, "no tool result is ever on disk"
    ratios = [_growth(spent)]
    while min(ratios) > 1.3 and len(ratios) < 3:  # a busy machine slows a run down; a growing cost shows in each
        ratios.append(_growth(long_thread(tmp_path / f"{len(ratios)}.sqlite", durability, 50)[1]))
    assert min(ratios) <= 1.3


def _growth(spent: list[float]) -> float:
    """CPU of the last turns against the first ones, the very first left out: it warms up."""
    return statistics.median(spent[-7:]) / statistics.median(spent[1:8])
