"""The agent that one app serves: its threads by owner, its running turns, the passages behind its citations."""

from __future__ import annotations

import asyncio
import unicodedata
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from starlette.requests import Request

from graphrag_agent.adapters.turn_log import TurnLog
from graphrag_agent.agent import RagAgent
from graphrag_agent.events import ErrorRaised, Event, TurnEnded, TurnStarted, id_after
from graphrag_agent.finishing import wait_out
from graphrag_agent.identity import Principal, owner_of
from graphrag_agent.persistence.threads import thread_owner
from graphrag_agent.server.limits import Limits, TurnSlots
from graphrag_agent.server.problems import Problem, problem_of, unknown_thread, without_secrets
from graphrag_agent.tools.knowledge_search import Readable

T = TypeVar("T")
MAX_LOGS = 1_000
MAX_ID_CHARACTERS = 128


@dataclass(frozen=True, slots=True)
class KeptTurn:
    """A streamed turn that runs, or ended a short while ago."""

    owner: str
    thread: str
    log: TurnLog


class Served:
    """What the routes work with. Belongs to the event loop that serves."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.slots = TurnSlots(limits)
        self.knowledge: Readable | None = None
        self._agent: RagAgent | None = None
        self._turns: dict[str, KeptTurn] = {}

    def open(self, agent: RagAgent, knowledge: Readable | None) -> None:
        """From now on requests are answered."""
        self._agent, self.knowledge = agent, knowledge

    async def close(self) -> None:
        """Stop what runs."""
        await asyncio.gather(*(turn.log.stop() for turn in self._turns.values()))
        self._turns.clear()
        self._agent = None

    @property
    def agent(self) -> RagAgent:
        """The agent. Raises Problem 503 before the app has started and after it has ended."""
        if self._agent is None:
            raise Problem(503, "not_ready", "the server is starting or stopping", "try again in a moment")
        return self._agent

    @property
    def saver(self) -> Any:
        """The agent's checkpointer."""
        return self.agent.checkpointer

    async def check_owner(self, thread: str, principal: Principal) -> None:
        """Raises Problem 404 unless the thread is there and the principal's."""
        owner = owner_of(principal)
        if any(kept.owner == owner for kept in self._running_on(thread)):
            return  # a thread's first turn may not have written anything yet
        if not _is_id(thread) or await thread_owner(self.saver, thread) != owner:
            raise unknown_thread(thread)

    def check_message(self, text: str) -> None:
        """Raises Problem for a text that is empty, too long, or no text."""
        most = self.limits.max_message_characters
        if not text.strip():
            raise Problem(400, "empty_message", "the message is empty", "say what you want to know")
        if len(text) > most:
            raise Problem(413, "message_too_long", f"the message is longer than {most} characters", "shorten it")
        check_text(text)

    def check_messages(self, texts: Sequence[str]) -> None:
        """Raises Problem for messages that are too long together, or no texts."""
        most = self.limits.max_chat_characters
        if sum(map(len, texts)) > most:
            raise Problem(
                413,
                "messages_too_long",
                f"the messages are longer than {most} characters together",
                "leave old ones out",
            )
        for text in texts:
            check_text(text)

    async def collect(self, request: Request, make: Callable[[], Coroutine[Any, Any, T]], principal: Principal) -> T:
        """The result of a turn that is stopped if the client leaves."""
        with self.slots.one_for(owner_of(principal)):
            work = asyncio.ensure_future(make())
            gone = asyncio.ensure_future(_disconnected(request))
            try:
                await asyncio.wait([work, gone], return_when=asyncio.FIRST_COMPLETED)
                if not work.done():
                    raise Problem(499, "client_left", "the client left before the answer")
                return await work
            finally:
                work.cancel()
                gone.cancel()
                await wait_out(asyncio.gather(work, gone, return_exceptions=True))

    async def stream(
        self, make: Callable[[], AsyncIterator[Event]], principal: Principal
    ) -> AsyncGenerator[Event, None]:
        """The events of a turn that has begun. What keeps it from beginning is raised by this call."""
        owner = owner_of(principal)
        log = TurnLog(self._held(make, owner), grace=self.limits.grace_seconds)
        reader = log.read()
        try:
            first = await anext(reader)
        except StopAsyncIteration:
            raise Problem(500, "internal", "the turn ended before it began", "try again") from None
        thread = first.thread if isinstance(first, TurnStarted) else ""
        self._turns[log.turn] = KeptTurn(owner, thread, log)
        return _followed(first, reader)

    def resume(self, turn: str, principal: Principal, after: str) -> AsyncGenerator[Event, None]:
        """The events of a turn after the one of that id. Raises Problem 404 for a turn that isn't the principal's."""
        kept = self._turns.get(turn)
        if kept is None or kept.owner != owner_of(principal):
            raise Problem(
                404, "unknown_turn", f"there is no turn {turn[:80]!r} to follow", "read the thread for its answer"
            )
        return kept.log.read(after)

    def running_turn(self, thread: str) -> str:
        """The turn that is being streamed on the thread; empty where none is."""
        return next((kept.log.turn for kept in self._running_on(thread)), "")

    def _running_on(self, thread: str) -> list[KeptTurn]:
        return [kept for kept in self._turns.values() if kept.thread == thread and not kept.log.is_ended]

    async def _held(self, make: Callable[[], AsyncIterator[Event]], owner: str) -> AsyncGenerator[Event, None]:
        """The events, in a slot of the owner's, and kept for a while after the last one."""
        turn = ""
        try:
            with self.slots.one_for(owner):
                async with aclosing(told_safely(make())) as events:
                    async for event in events:
                        turn = turn or event.event_id.partition(":")[0]
                        yield event
        finally:
            if turn:
                asyncio.get_running_loop().call_later(self.limits.kept_seconds, self._turns.pop, turn, None)
                self._let_go()

    def _let_go(self) -> None:
        """The turns that ended longest ago, where there are too many."""
        over = len(self._turns) - MAX_LOGS
        ended = [turn for turn, kept in self._turns.items() if kept.log.is_ended] if over > 0 else []
        for turn in ended[:over]:
            del self._turns[turn]


async def told_safely(events: AsyncIterator[Event]) -> AsyncGenerator[Event, None]:
    """The events, errors and outcomes without what isn't meant for a client. What comes before them is raised."""
    last = ""
    try:
        async for event in events:
            if isinstance(event, ErrorRaised):
                continue  # raised next
            last = event.event_id
            yield safe_event(event)
    except Exception as error:
        if not last:
            raise
        yield ErrorRaised(problem_of(error).message, event_id=id_after(last))
    finally:
        if isinstance(events, AsyncGenerator):
            await events.aclose()


def safe_event(event: Event) -> Event:
    """The event without what isn't meant for a client."""
    return replace(event, outcome=safe_outcome(event.outcome)) if isinstance(event, TurnEnded) else event


def safe_outcome(outcome: Mapping[str, Any]) -> dict[str, Any]:
    """The outcome; its reason and warnings may have been a provider's words."""
    told = dict(outcome)
    if isinstance(told.get("reason"), str):
        told["reason"] = without_secrets(told["reason"])
    if isinstance(told.get("warnings"), list | tuple):
        told["warnings"] = [without_secrets(item) if isinstance(item, str) else item for item in told["warnings"]]
    return told


def check_text(text: str) -> None:
    """Raises Problem for a text that can't be stored: JSON may spell half a character."""
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise Problem(400, "bad_text", "the text has half a character (a lone surrogate)", "send valid Unicode")


def _is_id(thread: str) -> bool:
    """Whether a database can be asked for it, and lines of logs stay lines."""
    is_text = not any(unicodedata.category(character) in ("Cc", "Cs") for character in thread)
    return is_text and 0 < len(thread) <= MAX_ID_CHARACTERS


async def _followed(first: Event, rest: AsyncGenerator[Event, None]) -> AsyncGenerator[Event, None]:
    async with aclosing(rest):
        yield first
        async for event in rest:
            yield event


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
