"""What Delta channels are rebuilt from is what LangGraph's own saver reads, the first time and every other."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.checkpoint.sqlite import SqliteSaver

from graphrag_agent import RagAgent
from graphrag_agent.persistence import sqlite_history
from graphrag_agent.persistence.checkpointers import open_checkpointer
from graphrag_agent.persistence.kept_messages import KeptMessages
from graphrag_agent.persistence.sqlite_history import read_history
from graphrag_agent.testing import ScriptedChatModel, call
from tests.canned import CannedKnowledge

CHANNELS = ["messages", "turn"]


@contextmanager
def opened(file: Path, serde: Any = None) -> Iterator[SqliteSaver]:
    with closing(sqlite3.connect(file)) as connection:
        yield SqliteSaver(connection, serde=serde)


def place(thread: str, id_: str | None = None) -> Any:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": "", **({"checkpoint_id": id_} if id_ else {})}}


@pytest.fixture
async def file(tmp_path: Path) -> Path:
    """Two threads, one of them with a branch and longer than two full copies."""
    path = tmp_path / "threads.sqlite"
    model = ScriptedChatModel(*[call("knowledge_search", query="alpha"), "Yes."] * 200)
    async with open_checkpointer("sqlite", path) as saver:
        agent = RagAgent(model=model, knowledge=CannedKnowledge(lambda query: [f"about {query}"]), checkpointer=saver)
        for number in range(66):
            await agent.aask(f"question {number}?", thread="long")
        asked = [message for message in await agent.ahistory("long") if message.type == "human"]
        await agent.aedit(asked[40].id or "", "another question?", thread="long")
        await agent.aask("hi", thread="short")
    return path


async def test_it_is_what_langgraph_reads_at_every_checkpoint_of_every_branch(file: Path):
    with opened(file) as plain, opened(file, KeptMessages()) as ours:
        ids = {
            thread: [item.config["configurable"]["checkpoint_id"] for item in plain.list(place(thread))]
            for thread in ("long", "short")
        }
        assert len(ids["long"]) > 66
        copies = 0
        for _ in range(2):
            for thread, names in ids.items():
                for id_ in names:
                    for channels in (["messages"], CHANNELS):
                        expected = plain.get_delta_channel_history(config=place(thread, id_), channels=channels)
                        assert read_history(ours, place(thread, id_), channels) == expected
                        copies += any("seed" in found for found in expected.values())
        assert copies > 100
        assert read_history(ours, place("long"), CHANNELS) == plain.get_delta_channel_history(
            config=place("long"), channels=CHANNELS
        )
        assert read_history(ours, place("nobody's", ids["short"][0]), CHANNELS) == {
            "messages": {"writes": []},
            "turn": {"writes": []},
        }


def row(file: Path, id_: str, parent: str | None, value: Any, serde: Any) -> None:
    with opened(file) as saver:
        saver.setup()
        kind, data = serde.dumps_typed({"v": 4, "id": id_, "channel_values": value})
        saver.conn.execute(
            "INSERT OR REPLACE INTO checkpoints VALUES ('t', '', ?, ?, ?, ?, '{}')", (id_, parent, kind, data)
        )
        saver.conn.commit()


def seed(saver: SqliteSaver, channel: str = "messages") -> Any:
    return read_history(saver, place("t", "3"), [channel])[channel].get("seed")


def test_a_copy_is_fetched_once_in_a_list_of_its_own_and_again_when_its_row_has_changed(tmp_path: Path):
    file, serde = tmp_path / "t.sqlite", KeptMessages()
    said = [HumanMessage("q", id="1"), AIMessage("a", id="2")]
    row(file, "1", None, {"messages": _DeltaSnapshot(said), "outcome": {"ending": "answered"}}, serde)
    row(file, "2", "1", {}, serde)
    row(file, "3", "2", {}, serde)
    with opened(file, serde) as saver:
        statements: list[str] = []
        saver.setup()
        saver.conn.set_trace_callback(statements.append)
        first, second = seed(saver), seed(saver)
        assert first.value == second.value == said
        assert first.value is not second.value and first.value[0] is second.value[0]
        assert sum(statement.startswith("SELECT checkpoint FROM") for statement in statements) == 2, (
            "1 and 2, once each"
        )
        assert seed(saver, "outcome") == {"ending": "answered"}, "a value that is no copy"
        row(file, "2", "1", {"messages": _DeltaSnapshot([*said, HumanMessage("pruned into it", id="3")])}, serde)
        assert [message.id for message in seed(saver).value] == ["1", "2", "3"]


def test_a_chain_that_is_a_loop_or_has_lost_its_root_ends(tmp_path: Path):
    file, serde = tmp_path / "t.sqlite", KeptMessages()
    row(file, "3", "2", {}, serde)
    row(file, "2", "3", {}, serde)
    with opened(file, serde) as saver:
        assert read_history(saver, place("t", "3"), CHANNELS) == {"messages": {"writes": []}, "turn": {"writes": []}}
        row(file, "2", "gone", {}, serde)
        assert read_history(saver, place("t", "3"), CHANNELS) == {"messages": {"writes": []}, "turn": {"writes": []}}


def test_a_langgraph_that_has_changed_reads_in_its_own_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file, serde = tmp_path / "t.sqlite", KeptMessages()
    row(file, "2", None, {"messages": _DeltaSnapshot([HumanMessage("q", id="1")])}, serde)
    row(file, "3", "2", {}, serde)
    monkeypatch.setattr(sqlite_history, "_delta", None)
    with opened(file, serde) as saver:
        assert [message.text for message in seed(saver).value] == ["q"]
