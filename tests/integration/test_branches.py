"""Editing, regenerating and going on from an earlier point: a new branch each, and nothing is lost."""

import re
import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import BaseMessage
from langgraph.checkpoint.memory import InMemorySaver

from graphrag_agent import RagAgent
from graphrag_agent.errors import SettingsError, ThreadError
from graphrag_agent.events import AnswerReady, ClientToolsRequested, TurnStarted
from graphrag_agent.persistence.checkpointers import open_checkpointer
from graphrag_agent.testing import ScriptedChatModel, call
from tests.canned import CannedKnowledge

DURABILITIES = ("exit", "async", "sync")


def answering(count: int) -> list[Any]:
    """Each turn searches, then answers with its number and what it was asked."""
    numbers = iter(range(1, count + 1))

    def answer(messages: list[BaseMessage], tools: tuple[str, ...]) -> str:
        asked = next(message.text for message in reversed(messages) if message.type == "human")
        return f"answer {next(numbers)} to {asked}"

    return [call("knowledge_search", query="x"), answer] * count


def agent(count: int, checkpointer: Any, durability: Any = "exit") -> RagAgent:
    model = ScriptedChatModel(*answering(count))
    return RagAgent(model=model, knowledge=CannedKnowledge(), checkpointer=checkpointer, durability=durability)


def texts(messages: list[BaseMessage]) -> list[str]:
    return [message.text for message in messages]


@pytest.mark.parametrize("durability", DURABILITIES)
async def test_an_edit_branches_off_before_its_turn_and_the_question_keeps_its_id(checkpointer: Any, durability: Any):
    rag = agent(5, checkpointer, durability)
    thread = (await rag.aask("one?")).thread
    second = await rag.aask("two?", thread=thread)
    await rag.aask("three?", thread=thread)
    before = texts(await rag.ahistory(thread))
    edited = await rag.aedit(second.question_id, "two, really?", thread=thread)
    assert edited.question_id == second.question_id
    now = await rag.ahistory(thread)
    assert texts(now) == ["one?", "answer 1 to one?", "two, really?", "answer 4 to two, really?"]
    assert now[2].id == second.question_id
    new, old = await rag.abranches(thread)
    assert (new.question, new.answer, new.turns, new.is_current) == (
        "two, really?",
        "answer 4 to two, really?",
        2,
        True,
    )
    assert (old.question, old.turns, old.is_current) == ("three?", 3, False)
    assert texts(await rag.ahistory(thread, branch=old.head)) == before
    await rag.aask("four?", thread=thread, branch=old.head)
    assert texts(await rag.ahistory(thread)) == [*before, "four?", "answer 5 to four?"]
    assert [branch.question for branch in await rag.abranches(thread)] == ["four?", "two, really?"]


@pytest.mark.parametrize("durability", DURABILITIES)
async def test_the_first_turn_can_be_edited_and_regenerated_again_and_again(checkpointer: Any, durability: Any):
    rag = agent(5, checkpointer, durability)
    first = await rag.aask("one?")
    await rag.aask("two?", thread=first.thread)
    await rag.aedit(first.question_id, "uno?", thread=first.thread)
    again = await rag.aregenerate(first.question_id, thread=first.thread)
    assert (again.text, again.question_id) == ("answer 4 to uno?", first.question_id), "the newest wording is asked"
    assert again.message_id != first.message_id
    assert texts(await rag.ahistory(first.thread)) == ["uno?", "answer 4 to uno?"]
    branches = await rag.abranches(first.thread)
    assert [(branch.question, branch.turns) for branch in branches] == [("uno?", 1), ("uno?", 1), ("two?", 2)]
    assert texts(await rag.ahistory(first.thread, branch=branches[2].head))[:2] == ["one?", "answer 1 to one?"]


@pytest.mark.parametrize("durability", DURABILITIES)
async def test_a_question_is_asked_again_by_its_answers_id_from_another_branch_too(checkpointer: Any, durability: Any):
    rag = agent(5, checkpointer, durability)
    first = await rag.aask("one?")
    second = await rag.aask("two?", thread=first.thread)
    await rag.aedit(first.question_id, "uno?", thread=first.thread)
    again = await rag.aregenerate(second.message_id, thread=first.thread)
    assert texts(await rag.ahistory(first.thread)) == ["one?", "answer 1 to one?", "two?", again.text]


async def test_a_thread_whose_oldest_checkpoint_already_has_the_question(checkpointer: Any):
    """As after pruning by others: there is no point before the first turn."""
    rag = agent(2, InMemorySaver())
    first = await rag.aask("one?")
    copy = agent(2, checkpointer)
    values = {"messages": await rag.ahistory(first.thread)}
    await copy.graph.aupdate_state({"configurable": {"thread_id": "t"}}, values, as_node="commit_answer")
    assert (await copy.aregenerate(first.message_id, thread="t")).text == "answer 1 to one?"
    assert texts(await copy.ahistory("t")) == ["one?", "answer 1 to one?"]
    assert len(await copy.abranches("t")) == 2


@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.parametrize("way", ["edit", "regenerate", "branch"])
async def test_a_branch_too_hands_out_the_calls_of_the_clients_tools(checkpointer: Any, durability: Any, way: str):
    model = ScriptedChatModel("First.", "Second.", call("open_panel"), "Opened.", call("open_panel"), "Opened again.")
    rag = RagAgent(model=model, checkpointer=checkpointer, durability=durability)
    first = await rag.aask("One?")
    await rag.aask("Two?", thread=first.thread)
    (head,) = [branch.head for branch in await rag.abranches(first.thread)]
    on: dict[str, Any] = {"thread": first.thread, "context": {"client_tools": [{"name": "open_panel"}]}}
    whole, events = {
        "edit": (partial(rag.aedit, first.question_id, "Open."), partial(rag.astream_edit, first.question_id, "Open.")),
        "regenerate": (partial(rag.aregenerate, first.message_id), partial(rag.astream_regenerate, first.question_id)),
        "branch": (partial(rag.aask, "Open.", branch=head), partial(rag.astream, "Open.", branch=head)),
    }[way]
    (asked,) = (await whole(**on)).pending
    assert (await rag.aresume({asked["id"]: "ok"}, **on)).text == "Opened."
    last = [event async for event in events(**on)][-1]
    assert isinstance(last, ClientToolsRequested)
    assert (await rag.aresume({last.calls[0]["id"]: "ok"}, **on)).text == "Opened again."
    assert len(await rag.ahistory(first.thread)) == (6 if way == "branch" else 2)


def test_the_sync_names_and_the_streams_do_the_same():
    rag = agent(4, InMemorySaver())
    first = rag.ask("one?")
    started, *_, ready, _ = list(rag.stream_edit(first.question_id, "uno?", thread=first.thread))
    assert isinstance(started, TurnStarted) and isinstance(ready, AnswerReady)
    assert (started.question, started.question_id) == ("uno?", first.question_id)
    assert rag.edit(first.question_id, "eins?", thread=first.thread).text == "answer 3 to eins?"
    *_, ready, _ = rag.stream_regenerate(first.question_id, thread=first.thread)
    assert isinstance(ready, AnswerReady) and ready.text == "answer 4 to eins?"
    assert len(rag.branches(first.thread)) == 4


async def test_what_cannot_be_edited_is_named_with_the_remedy(checkpointer: Any):
    rag = agent(1, checkpointer)
    first = await rag.aask("one?", thread="t")
    with pytest.raises(ThreadError, match=r"message_id='nope' is not in thread 't'; .*history\('t'\)"):
        await rag.aedit("nope", "two?", thread="t")
    with pytest.raises(ThreadError, match="is an answer; edit takes a question's id, regenerate either"):
        await rag.aedit(first.message_id, "two?", thread="t")
    with pytest.raises(ThreadError, match="message_id='x' is not in thread 'unknown'"):
        await rag.aregenerate("x", thread="unknown")
    with pytest.raises(ThreadError, match=r"branch='nope' is no head of thread 't'; branches\('t'\) lists them"):
        await rag.aask("two?", thread="t", branch="nope")
    with pytest.raises(SettingsError, match="text=' ' is empty"):
        await rag.aedit(first.question_id, " ", thread="t")
    assert texts(await rag.ahistory("t")) == ["one?", "answer 1 to one?"]
    assert await rag.abranches("unknown") == []


async def test_an_edit_keeps_tool_results_out_of_the_file(tmp_path: Path):
    path = tmp_path / "threads.sqlite"
    async with open_checkpointer("sqlite", path) as saver:
        rag = agent(2, saver)
        first = await rag.aask("one?")
        await rag.aedit(first.question_id, "uno?", thread=first.thread)
    with closing(sqlite3.connect(path)) as database:
        rows = list(database.execute("SELECT checkpoint FROM checkpoints UNION ALL SELECT value FROM writes"))
    assert b"All about x" not in b"".join(row[0] for row in rows)


@pytest.mark.parametrize("name", ["a\0b", "a\ud800"])
async def test_a_name_that_no_database_takes_is_refused_by_name(checkpointer: Any, name: str):
    agent = RagAgent(model=ScriptedChatModel(), knowledge=CannedKnowledge(), checkpointer=checkpointer)
    with pytest.raises(ThreadError, match=re.escape(repr(name))):
        await agent.aask("q", thread=name)
    assert (await agent.ahistory(name), await agent.abranches(name)) == ([], []), "as for any that isn't there"
