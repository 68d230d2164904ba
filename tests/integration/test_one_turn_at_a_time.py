"""Turns on one thread: alone, stopped in order, and only the owner's."""

import asyncio
import threading
from typing import Any

import pytest
from langchain_core.messages import BaseMessage
from langgraph.checkpoint.memory import InMemorySaver

from graphrag_agent import Principal, RagAgent, Settings, acting_as
from graphrag_agent.conversation.running_turns import running_turns_of
from graphrag_agent.errors import ThreadBusyError, ThreadError
from graphrag_agent.events import TextDelta, ToolStart, TurnEnded, TurnStarted
from graphrag_agent.testing import ScriptedChatModel, call
from tests.canned import CannedKnowledge

ANN, BOB = Principal("acme", "ann", ("hr",)), Principal("acme", "bob", ("hr",))


class Gate(CannedKnowledge):
    """Searches wait, whatever loop they run on, until the gate is opened."""

    def __init__(self) -> None:
        super().__init__()
        self.is_open = threading.Event()
        self.entered = threading.Event()

    async def asearch(self, *args: Any, **kwargs: Any) -> Any:
        self.entered.set()
        while not self.is_open.is_set():  # noqa: ASYNC110  # opened from any loop
            await asyncio.sleep(0.005)
        return await super().asearch(*args, **kwargs)

    async def wait_entered(self) -> None:
        while not self.entered.is_set():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


pytestmark = pytest.mark.usefixtures("short_leases")


def search() -> Any:
    return call("knowledge_search", query="x")


def agent(gate: CannedKnowledge, *steps: Any, checkpointer: Any = None, wait: bool = False, **options: Any) -> RagAgent:
    return RagAgent(
        model=ScriptedChatModel(*steps),
        knowledge=gate,
        checkpointer=checkpointer or InMemorySaver(),
        settings=Settings(when_busy="wait" if wait else "refuse"),
        **options,
    )


def texts(messages: list[BaseMessage]) -> list[str]:
    return [message.text for message in messages]


async def test_a_second_turn_is_refused_while_one_runs_and_runs_after_it():
    gate = Gate()
    rag = agent(gate, search(), "first", "second")
    running = asyncio.create_task(rag.aask("one?", thread="t"))
    await gate.wait_entered()
    with pytest.raises(ThreadBusyError, match="thread 't' has a running turn; wait for its end or stop it"):
        await rag.aask("two?", thread="t")
    with pytest.raises(ThreadBusyError):
        _ = [event async for event in rag.astream("two?", thread="t")]
    gate.is_open.set()
    assert (await running).text == "first"
    assert (await rag.aask("two?", thread="t")).text == "second"


@pytest.mark.parametrize("change", ["edit", "regenerate"])
async def test_a_thread_whose_answer_is_being_streamed_is_not_changed_meanwhile(change: str):
    gate = Gate()
    rag = agent(gate, "first", search(), "second", "third")
    first = await rag.aask("one?", thread="t")

    async def changed() -> Any:
        if change == "edit":
            return await rag.aedit(first.question_id, "another one?", thread="t")
        return await rag.aregenerate(first.message_id, thread="t")

    seen: list[Any] = []
    async for event in rag.astream("two?", thread="t"):
        seen.append(event)
        if isinstance(event, ToolStart):
            with pytest.raises(ThreadBusyError, match="wait for its end or stop it"):
                await changed()
            gate.is_open.set()
    assert isinstance(seen[-1], TurnEnded)
    assert texts(await rag.ahistory("t")) == ["one?", "first", "two?", "second"]
    assert (await changed()).text == "third"


async def test_agents_that_share_a_checkpointer_share_its_turns():
    gate, saver = Gate(), InMemorySaver()
    running = asyncio.create_task(agent(gate, search(), "a", checkpointer=saver).aask("one?", thread="t"))
    await gate.wait_entered()
    with pytest.raises(ThreadBusyError):
        await agent(gate, "b", checkpointer=saver).aask("two?", thread="t")
    gate.is_open.set()
    await running


async def test_turns_wait_for_each_other_across_event_loops_and_never_mix():
    gate, saver = Gate(), InMemorySaver()
    gate.is_open.set()
    rag = agent(gate, *[step for _ in range(12) for step in (search(), "done")], checkpointer=saver, wait=True)
    own_loops = [asyncio.to_thread(asyncio.run, rag.aask(f"loop {n}?", thread="t")) for n in range(4)]
    sync = [asyncio.to_thread(rag.ask, f"sync {n}?", thread="t") for n in range(4)]
    here = [rag.aask(f"here {n}?", thread="t") for n in range(4)]
    await asyncio.gather(*own_loops, *sync, *here)
    messages = await rag.ahistory("t")
    assert [message.type for message in messages] == ["human", "ai"] * 12
    assert len({message.text for message in messages[::2]}) == 12
    assert len(running_turns_of(saver)) == 0


@pytest.mark.parametrize("way", ["cancelled", "crashed", "closed"])
async def test_a_turn_that_breaks_off_frees_its_thread(way: str):
    class Full(InMemorySaver):
        async def aput(self, *args: Any, **kwargs: Any) -> Any:
            if way == "crashed" and gate.is_open.is_set():
                raise OSError("disk full")
            return await super().aput(*args, **kwargs)

    gate, saver = Gate(), Full()
    rag = agent(gate, search(), "never", checkpointer=saver, durability="sync")
    if way == "closed":
        events = rag.astream("one?", thread="t")
        async for event in events:
            if isinstance(event, ToolStart):
                break
        await events.aclose()  # type: ignore[attr-defined]
    else:
        running = asyncio.create_task(rag.aask("one?", thread="t"))
        await gate.wait_entered()
        if way == "cancelled":
            running.cancel()
        gate.is_open.set()
        with pytest.raises((asyncio.CancelledError, OSError)):
            await running
    assert len(running_turns_of(saver)) == 0
    way = "over"
    assert (await agent(gate, "ok", checkpointer=saver).aask("two?", thread="t")).text == "ok"


async def test_a_waiting_turn_that_is_cancelled_leaves_the_queue():
    gate, saver = Gate(), InMemorySaver()
    rag = agent(gate, search(), "first", "third", checkpointer=saver, wait=True)
    first = asyncio.create_task(rag.aask("one?", thread="t"))
    await gate.wait_entered()
    second = asyncio.create_task(rag.aask("two?", thread="t"))
    third = asyncio.create_task(rag.aask("three?", thread="t"))
    await asyncio.sleep(0.02)
    second.cancel()
    gate.is_open.set()
    assert (await first).text == "first"
    assert (await third).text == "third"
    with pytest.raises(asyncio.CancelledError):
        await second
    assert len(running_turns_of(saver)) == 0


@pytest.mark.parametrize("durability", ["exit", "async", "sync"])
@pytest.mark.parametrize("turns_before", [0, 1])
async def test_a_stopped_turn_leaves_its_question_marked_and_the_thread_goes_on(
    checkpointer: Any, durability: Any, turns_before: int
):
    gate = Gate()
    steps = ["hello"] * turns_before + [search(), "again", "next"]
    rag = agent(gate, *steps, checkpointer=checkpointer, durability=durability)
    for _ in range(turns_before):
        await rag.aask("hi?", thread="t")
    running = asyncio.create_task(rag.aask("one?", thread="t"))
    await gate.wait_entered()
    assert await rag.astop("t")
    stopped = await running
    assert (stopped.text, stopped.outcome) == ("", {"ending": "cancelled", "reason": "stopped"})
    messages = (await rag.ahistory("t"))[2 * turns_before :]
    assert texts(messages) == ["one?"] and messages[0].additional_kwargs["ending"] == "cancelled"
    state = (await rag.graph.aget_state({"configurable": {"thread_id": "t"}})).values
    assert not any(state.get(channel) for channel in ("turn", "ledger", "budget"))
    gate.is_open.set()
    assert (await rag.aregenerate(stopped.question_id, thread="t")).text == "again"
    messages = (await rag.ahistory("t"))[2 * turns_before :]
    assert texts(messages) == ["one?", "again"] and "ending" not in messages[0].additional_kwargs
    assert (await rag.aask("two?", thread="t")).text == "next"
    assert not await rag.astop("t"), "nothing runs"


@pytest.mark.parametrize("durability", ["exit", "async", "sync"])
@pytest.mark.parametrize("at", [0, 1])
async def test_stopping_an_edit_leaves_the_other_branch_alone(checkpointer: Any, durability: Any, at: int):
    gate = Gate()
    rag = agent(gate, "first", "second", search(), "never", checkpointer=checkpointer, durability=durability)
    asked = [await rag.aask("one?", thread="t"), await rag.aask("two?", thread="t")]
    before = texts(await rag.ahistory("t"))
    running = asyncio.create_task(rag.aedit(asked[at].question_id, "edited?", thread="t"))
    await gate.wait_entered()
    assert await rag.astop("t")
    await running
    assert texts(await rag.ahistory("t")) == [*before[: 2 * at], "edited?"]
    stopped, kept = await rag.abranches("t")
    assert (stopped.question, stopped.answer, kept.question) == ("edited?", "", "two?")
    assert texts(await rag.ahistory("t", branch=kept.head)) == before


async def test_a_stream_that_is_stopped_by_its_turn_id_ends_as_cancelled():
    gate = Gate()
    rag = agent(gate, search(), "never")
    events = []
    async for event in rag.astream("one?"):
        events.append(event)
        if isinstance(event, ToolStart):
            assert await rag.astop(events[0].turn)  # type: ignore[union-attr]
    assert isinstance(events[-1], TurnEnded) and events[-1].outcome["ending"] == "cancelled"
    assert [event.event_id for event in events] == [f"{events[0].turn}:{n}" for n in range(1, len(events) + 1)]


def test_stop_works_from_sync_code_and_another_thread():
    gate = Gate()
    rag = agent(gate, search(), "never")
    ending: list[Any] = []
    asking = threading.Thread(target=lambda: ending.append(rag.ask("one?", thread="t").outcome["ending"]))
    asking.start()
    assert gate.entered.wait(5)
    assert rag.stop("t")
    asking.join(5)
    assert ending == ["cancelled"]


async def test_a_stop_while_the_answer_is_written_down_lets_it_finish():
    rag = agent(CannedKnowledge(), "the answer")
    events = []
    async for event in rag.astream("one?", thread="t"):
        events.append(event)
        if event.type == "answer":
            await rag.astop("t")
    assert events[-1].outcome["ending"] == "answered"  # type: ignore[union-attr]
    assert texts(await rag.ahistory("t")) == ["one?", "the answer"]


@pytest.mark.parametrize("durability", ["exit", "sync"])
async def test_somebody_elses_thread_is_unknown(checkpointer: Any, durability: Any):
    rag = agent(CannedKnowledge(), *["hello"] * 4, checkpointer=checkpointer, durability=durability)
    first = await rag.aask("one?", thread="t", principal=ANN)
    second = await rag.aask("two?", thread="t", principal=Principal("acme", "ann"))
    assert second.text == "hello", "groups change, threads stay"
    head = (await rag.abranches("t", principal=ANN))[0].head
    for other in (BOB, Principal("other", "ann"), None):
        assert await rag.ahistory("t", principal=other) == []
        assert await rag.ahistory("t", branch=head, principal=other) == []
        assert await rag.abranches("t", principal=other) == []
        assert not await rag.astop("t", principal=other)
        for attempt in (
            rag.aask("mine?", thread="t", principal=other),
            rag.aask("mine?", thread="t", branch=head, principal=other),
            rag.aedit(first.question_id, "mine?", thread="t", principal=other),
            rag.aregenerate(first.message_id, thread="t", principal=other),
            rag.aresume({}, thread="t", principal=other),
        ):
            with pytest.raises(ThreadError, match="thread 't' is unknown"):
                await attempt
    with acting_as(ANN):
        assert len(await rag.ahistory("t")) == 4
        await rag.aedit(first.question_id, "uno?", thread="t")
        assert texts(await rag.ahistory("t")) == ["uno?", "hello"]


async def test_a_running_thread_is_unknown_to_others_too_and_they_cannot_stop_it():
    gate = Gate()
    rag = agent(gate, search(), "first", wait=True)
    running = asyncio.create_task(rag.aask("one?", thread="t", principal=ANN))
    await gate.wait_entered()
    with pytest.raises(ThreadError, match="thread 't' is unknown"):
        await rag.aask("two?", thread="t", principal=BOB)
    assert not await rag.astop("t", principal=BOB)
    gate.is_open.set()
    assert (await running).text == "first"


async def test_the_owner_of_a_stopped_turns_thread_is_written_too(checkpointer: Any):
    gate = Gate()
    rag = agent(gate, search(), "never", checkpointer=checkpointer)
    running = asyncio.create_task(rag.aask("one?", thread="t", principal=ANN))
    await gate.wait_entered()
    await rag.astop("t", principal=ANN)
    await running
    assert texts(await rag.ahistory("t", principal=ANN)) == ["one?"]
    assert await rag.ahistory("t") == []


async def test_a_client_cannot_name_the_owner():
    rag = agent(CannedKnowledge(), "hello")
    await rag.aask("one?", thread="t", principal=ANN, context={"locale": "en"})
    with pytest.raises(Exception, match="graphrag_owner"):
        await rag.aask("two?", thread="t", context={"graphrag_owner": '["acme", "ann"]'})


async def test_text_before_a_stop_is_not_kept():
    stop_here = asyncio.Event()
    rag = agent(CannedKnowledge(), "a long answer that is cut")
    async for event in rag.astream("one?", thread="t"):
        if isinstance(event, TurnStarted):
            continue
        if isinstance(event, TextDelta) and not stop_here.is_set():
            stop_here.set()
            asyncio.get_running_loop().create_task(rag.astop("t"))
    messages = await rag.ahistory("t")
    assert texts(messages) in (["one?"], ["one?", "a long answer that is cut"])


@pytest.mark.parametrize("durability", ["exit", "async", "sync"])
@pytest.mark.parametrize("left_at", ["answer", "turn_ended"])
async def test_a_stream_left_once_its_answer_is_out_keeps_the_answer(checkpointer: Any, durability: Any, left_at: str):
    rag = agent(CannedKnowledge(), "first", "second", checkpointer=checkpointer, durability=durability)
    events = rag.astream("one?", thread="t")
    async for event in events:
        if event.type == left_at:
            break
    await events.aclose()
    assert texts(await rag.ahistory("t")) == ["one?", "first"]
    assert (await rag.aask("two?", thread="t")).text == "second"
    assert texts(await rag.ahistory("t")) == ["one?", "first", "two?", "second"]


@pytest.mark.parametrize("left_at", ["answer", "turn_ended"])
def test_a_sync_stream_left_once_its_answer_is_out_keeps_the_answer(left_at: str):
    rag = agent(CannedKnowledge(), "first")
    for event in rag.stream("one?", thread="t"):
        if event.type == left_at:
            break
    assert texts(rag.history("t")) == ["one?", "first"]


@pytest.mark.parametrize("way", ["asked", "streamed"])
@pytest.mark.parametrize("durability", ["exit", "sync"])
async def test_a_turn_cancelled_again_and_again_holds_its_thread_to_its_end(durability: Any, way: str):
    entered, ended = asyncio.Event(), asyncio.Event()

    async def slow_to_end(x: str) -> str:
        """Takes a while to end even where it is cancelled."""
        entered.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.2)
            ended.set()
        return x

    steps = ("hello", call("slow_to_end", x="1"), "next")
    rag = agent(CannedKnowledge(), *steps, durability=durability, tools=[slow_to_end])
    await rag.aask("hi?", thread="t")

    async def asking() -> None:
        if way == "asked":
            await rag.aask("one?", thread="t")
        else:
            _ = [event async for event in rag.astream("one?", thread="t")]

    running = asyncio.create_task(asking())
    await entered.wait()
    while not running.done():  # as anyio does, at every await
        running.cancel()
        await asyncio.sleep(0.01)
    assert ended.is_set() and running.cancelled()
    await rag.aask("two?", thread="t")
    assert texts(await rag.ahistory("t"))[-2:] == ["two?", "next"]


async def test_a_stop_whose_asker_leaves_meanwhile_still_leaves_the_question_marked():
    class Slow(InMemorySaver):
        settling, settled = asyncio.Event(), asyncio.Event()  # LangGraph copies the saver

        async def aput(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
            if metadata.get("source") != "update":
                return await super().aput(config, checkpoint, metadata, new_versions)
            self.settling.set()
            await asyncio.sleep(0.1)
            saved = await super().aput(config, checkpoint, metadata, new_versions)
            self.settled.set()
            return saved

    gate, saver = Gate(), Slow()
    rag = agent(gate, "hello", search(), "next", checkpointer=saver)
    await rag.aask("hi?", thread="t")
    running = asyncio.create_task(rag.aask("one?", thread="t"))
    await gate.wait_entered()
    stopping = asyncio.create_task(rag.astop("t"))
    await saver.settling.wait()
    running.cancel()
    assert await stopping
    assert saver.settled.is_set()
    assert texts(await rag.ahistory("t")) == ["hi?", "hello", "one?"]
