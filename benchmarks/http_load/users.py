"""The users of the load: each asks, reads the stream to its end, checks what came, and asks again."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import aiohttp

TURNS_A_THREAD = 5
QUESTIONS = (
    "How long is the warranty of the Weir G4?",
    "What does E-1042 mean?",
    "How many days of remote work are allowed each week?",
    "Compare the warranty of the Brook S2 and the Weir G4",
)


@dataclass
class Seen:
    """What all users saw."""

    turns: int = 0
    events: int = 0
    errors: list[str] = field(default_factory=list)
    first_text_seconds: list[float] = field(default_factory=list)
    turn_seconds: list[float] = field(default_factory=list)
    longest_gap_seconds: list[float] = field(default_factory=list)
    """Of each turn: between two events once its text had begun."""
    streams: int = 0
    """Open now."""
    most_streams: int = 0


async def load(url: str, tokens: Sequence[str], *, streams: int, seconds: float) -> Seen:
    """So many streams kept open for so long; the last ones are read to their end."""
    seen, end = Seen(), time.monotonic() + seconds
    connector = aiohttp.TCPConnector(limit=streams + 10)
    timeout = aiohttp.ClientTimeout(total=None, sock_read=60)
    async with aiohttp.ClientSession(url, connector=connector, timeout=timeout) as session:
        await asyncio.gather(
            *(_user(session, tokens[place % len(tokens)], place, end, seen) for place in range(streams))
        )
    return seen


async def _user(session: aiohttp.ClientSession, token: str, place: int, end: float, seen: Seen) -> None:
    await asyncio.sleep(place * 0.02)  # nobody's users all come in the same millisecond
    turn, thread = 0, ""
    while time.monotonic() < end:
        question = QUESTIONS[(place + turn) % len(QUESTIONS)]
        seen.streams += 1
        seen.most_streams = max(seen.most_streams, seen.streams)
        try:
            thread = await _turn(session, token, question, thread, seen)
        except (aiohttp.ClientError, TimeoutError, ValueError, AssertionError) as error:
            seen.errors.append(f"{type(error).__name__}: {error}")
            thread = ""
            await asyncio.sleep(1)
        finally:
            seen.streams -= 1
        turn += 1
        if turn % TURNS_A_THREAD == 0:
            thread = ""


async def _turn(session: aiohttp.ClientSession, token: str, question: str, thread: str, seen: Seen) -> str:
    """The thread of the turn. Raises where anything is not as it should be."""
    body = {"question": question, "stream": True, **({"thread": thread} if thread else {})}
    began = last = time.monotonic()
    first_text = gap = 0.0
    text, answer, ended = "", {}, {}
    async with session.post("/api/turns", json=body, headers={"Authorization": f"Bearer {token}"}) as response:
        if response.status != 200:
            raise ValueError(f"status {response.status}: {(await response.text())[:200]}")
        async for event in _events(response.content):
            now = time.monotonic()
            seen.events += 1
            if event["type"] == "turn_started":
                thread = event["thread"]
            elif event["type"] == "text_delta":
                gap = max(gap, now - last) if text else gap
                first_text = first_text or now - began
                text += event["text"]
            elif event["type"] == "answer":
                answer = event
            elif event["type"] == "turn_ended":
                ended = event
            elif event["type"] == "error":
                raise ValueError(f"error event: {event}")
            last = now
    assert ended.get("outcome", {}).get("ending") == "answered", f"ended as {ended.get('outcome', 'nothing')}"
    assert answer["citations"] and answer["text"].startswith("notice notice"), f"answer {answer}"
    assert text.strip() == answer["text"].strip(), "the stream and the answer differ"
    seen.turns += 1
    seen.first_text_seconds.append(first_text)
    seen.turn_seconds.append(time.monotonic() - began)
    seen.longest_gap_seconds.append(gap)
    return thread


async def _events(content: aiohttp.StreamReader) -> AsyncIterator[dict[str, Any]]:
    async for line in content:
        if line.startswith(b"data:"):
            yield json.loads(line[5:])
