"""Events on the wire: whole, in order, with heartbeats, resumable."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_agent import RagAgent
from graphrag_agent.adapters.sse import HEARTBEAT, sse_message, sse_of, stream_sse
from graphrag_agent.adapters.turn_log import TurnLog
from graphrag_agent.errors import ThreadError
from graphrag_agent.events import ErrorRaised, Event, TextDelta, TurnEnded, TurnStarted, event_from_dict
from graphrag_agent.testing import ScriptedChatModel, call
from tests.canned import CannedKnowledge
from tests.waiting import until_here


def parsed(stream: bytes) -> list[dict[str, str]]:
    """As the standard says: lines end in CR, LF or CRLF, an empty one ends a message."""
    messages, current = [], dict[str, list[str]]()
    for line in re.split("\r\n|\r|\n", stream.decode()):
        if line and not line.startswith(":"):
            name, _, value = line.partition(":")
            current.setdefault(name, []).append(value.removeprefix(" "))
        elif not line and "data" in current:
            messages.append({name: "\n".join(values) for name, values in current.items()})
            current = {}
    return messages


async def given_events(
    *events: Event, pause: float = 0.0, error: Exception | None = None
) -> AsyncGenerator[Event, None]:
    for event in events:
        await asyncio.sleep(pause)
        yield event
    if error:
        raise error


def numbered(count: int, text: str = "x") -> list[Event]:
    return [TextDelta(f"{text}{n}", "m", event_id=f"turn:{n}") for n in range(1, count + 1)]


@given(st.text(), st.text(), st.text())
def test_no_text_breaks_out_of_its_message(data: str, event: str, id_: str):
    safe = data.encode("utf-8", "replace").decode()
    (message,) = parsed(sse_message(data, event=event, id_=id_))
    assert message["data"] == re.sub("\r\n|\r", "\n", safe)
    assert set(message) <= {"data", "event", "id"}


@given(st.text())
def test_an_event_reads_back_from_its_message(text: str):
    event = TextDelta(text, "m", event_id="turn:1")
    (message,) = parsed(sse_of(event))
    assert (message["event"], message["id"]) == ("text_delta", "turn:1")
    assert event_from_dict(json.loads(message["data"])) == TextDelta(
        text.encode("utf-8", "replace").decode(), "m", event_id="turn:1"
    )


async def test_a_turn_comes_in_its_order_and_says_when_to_come_back():
    rag = RagAgent(model=ScriptedChatModel(call("knowledge_search", query="x"), "done"), knowledge=CannedKnowledge())
    stream = b"".join([piece async for piece in stream_sse(rag.astream("Really?"))])
    messages = parsed(stream)
    numbers = [int(message["id"].rpartition(":")[2]) for message in messages]
    assert numbers == list(range(1, len(messages) + 1))
    assert [m["event"] for m in messages if m["event"] != "text_delta"] == [
        *("turn_started", "tool_start", "tool_end", "answer", "turn_ended")
    ]
    assert stream.startswith(b"retry: 2000\n") and stream.count(b"retry:") == 1


async def test_silence_is_filled_with_comments():
    pieces = [piece async for piece in stream_sse(given_events(*numbered(2), pause=0.05), heartbeat=0.01)]
    assert pieces.count(HEARTBEAT) >= 2
    assert [message["id"] for message in parsed(b"".join(pieces))] == ["turn:1", "turn:2"]


async def test_an_error_that_was_told_ends_the_stream_and_one_before_it_is_raised():
    told = given_events(TurnStarted("t", "q"), ErrorRaised("boom"), error=ValueError("boom"))
    assert [message["event"] for message in parsed(b"".join([piece async for piece in stream_sse(told)]))] == [
        *("turn_started", "error")
    ]
    with pytest.raises(ThreadError, match="busy"):
        _ = [piece async for piece in stream_sse(given_events(error=ThreadError("busy")))]


async def test_closing_the_stream_closes_the_events():
    closed = asyncio.Event()

    async def endless() -> AsyncIterator[Event]:
        try:
            yield numbered(1)[0]
            await asyncio.sleep(60)
        finally:
            closed.set()

    stream = stream_sse(endless(), heartbeat=0.01)
    await anext(stream)
    await anext(stream)
    await stream.aclose()
    assert closed.is_set()


@pytest.mark.parametrize("lost_after", range(6))
async def test_a_reader_goes_on_after_the_event_it_saw_last(lost_after: int):
    log = TurnLog(given_events(*numbered(5), TurnEnded(event_id="turn:6"), pause=0.002))
    seen: list[Event] = []
    reading = log.read()
    async for event in reading:
        seen.append(event)
        if len(seen) > lost_after:
            break
    await reading.aclose()
    seen += [event async for event in log.read(seen[-1].event_id)]
    assert [event.event_id for event in seen] == [f"turn:{n}" for n in range(1, 7)]
    assert [event async for event in log.read()] == seen, "also after its end"
    assert log.is_ended and log.turn == "turn"


async def test_two_readers_get_everything():
    log = TurnLog(given_events(*numbered(20), pause=0.001))

    async def all_of_it() -> list[str]:
        return [event.event_id async for event in log.read()]

    first, second = await asyncio.gather(all_of_it(), all_of_it())
    assert first == second == [f"turn:{n}" for n in range(1, 21)]


async def test_a_turn_without_readers_is_stopped_after_its_grace_and_not_before():
    stopped = asyncio.Event()

    async def endless() -> AsyncIterator[Event]:
        try:
            for at in count(1):
                yield TextDelta("x", "m", event_id=f"turn:{at}")
                await asyncio.sleep(0.001)
        finally:
            stopped.set()

    log = TurnLog(endless(), grace=1.0)
    for _ in range(3):  # comes back in time, again and again
        reading = log.read()
        async for _event in reading:
            break
        await reading.aclose()
        await asyncio.sleep(0.4)
        assert not stopped.is_set()
    await asyncio.wait_for(stopped.wait(), 20)
    await asyncio.sleep(0)
    assert log.is_ended


async def test_what_nobody_ever_reads_is_stopped_too():
    log = TurnLog(given_events(*numbered(1000), pause=0.01), grace=0.05)
    await until_here(lambda: log.is_ended, seconds=5)


async def test_the_log_is_bounded_and_says_so_to_those_who_are_late():
    log = TurnLog(given_events(*numbered(50)), max_events=10)
    await until_here(lambda: log.is_ended)
    assert [event.event_id async for event in log.read("turn:45")] == [f"turn:{n}" for n in range(46, 51)]
    with pytest.raises(ThreadError, match="were dropped; read the thread's history"):
        _ = [event async for event in log.read("turn:3")]
    with pytest.raises(ThreadError, match="were dropped"):
        _ = [event async for event in log.read()]
    large = TurnLog(given_events(*numbered(50, "x" * 100)), max_characters=1000)
    await until_here(lambda: large.is_ended)
    assert len([event async for event in large.read("turn:45")]) == 5


@pytest.mark.parametrize("after", ["other:1", "turn:99", "turn:0", "turn:-1", "turn:x", "nonsense", "turn:٣", ":1"])
async def test_an_id_of_something_else_is_refused(after: str):
    log = TurnLog(given_events(*numbered(3)))
    await until_here(lambda: log.is_ended)
    with pytest.raises(ThreadError, match="is none of this turn"):
        log.read(after)


async def test_an_error_comes_after_the_last_event_to_every_reader():
    log = TurnLog(given_events(*numbered(2), error=ValueError("boom")))
    for _ in range(2):
        seen: list[Any] = []
        with pytest.raises(ValueError, match="boom"):
            async for event in log.read():
                seen.append(event)
        assert len(seen) == 2


async def test_stopping_the_log_stops_the_turn():
    log = TurnLog(given_events(*numbered(1000), pause=0.001))
    await until_here(lambda: log.turn)
    await log.stop()
    assert log.is_ended
    assert 0 < len([event async for event in log.read()]) < 1000
