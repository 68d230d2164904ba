"""Runs turns: each alone on its thread, for the thread's owner, as events; a stopped one leaves the thread in order."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any, Literal

from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph.state import CompiledStateGraph

from graphrag_agent.context import AgentContext
from graphrag_agent.conversation.process_locks import database_of, held_against_others, process_locks_of
from graphrag_agent.conversation.running_turns import RunningTurn, WhenBusy, running_turns_of
from graphrag_agent.conversation.starts import Begun, Start, begin, cancelled
from graphrag_agent.conversation.thread_history import ThreadHistory, checked_thread, config_of
from graphrag_agent.events import AnswerReady, Event, TurnEnded, TurnStarted
from graphrag_agent.finishing import finish, wait_out
from graphrag_agent.graph.prompts.history import CANCELLED
from graphrag_agent.graph.state import emptied
from graphrag_agent.identity import OWNER_KEY, PUBLIC_OWNER, acting_principal, owner_of
from graphrag_agent.persistence.pruning import prune_thread
from graphrag_agent.streaming.from_graph import run_graph

logger = logging.getLogger(__name__)

Durability = Literal["exit", "async", "sync"]


@dataclass(frozen=True, slots=True)
class TurnRules:
    """How one agent runs its turns."""

    durability: Durability = "exit"
    when_busy: WhenBusy = "refuse"
    tool_names: Collection[str] = ()
    prune: bool = True
    has_nested: bool = False
    """Tools may run turns of their own."""


class Turns:
    """The turns of one graph."""

    def __init__(
        self, graph: CompiledStateGraph[Any, Any, Any, Any], checkpointer: BaseCheckpointSaver[Any], rules: TurnRules
    ) -> None:
        self._graph = graph
        self._rules = rules
        self._checkpointer = checkpointer
        self._running = running_turns_of(database_of(checkpointer))
        self._locks = process_locks_of(checkpointer)
        self.history = ThreadHistory(graph, checkpointer)

    async def run(
        self, start: Start, thread: str, context: AgentContext, emit: Callable[[Event], None], *, with_text: bool
    ) -> None:
        """One turn, for the acting principal. Its first event is `TurnStarted`; what fails before has no event.

        Raises ThreadError where the thread, message or branch is unknown, or no database takes the thread's name, and
        ThreadBusyError where a turn runs on it.
        """
        owner = owner_of(acting_principal())
        turn = RunningTurn(uuid.uuid4().hex, checked_thread(thread), owner)
        numbered = _Numbered(turn, emit)
        when_busy = self._rules.when_busy
        async with self._running.hold(turn, when_busy), held_against_others(self._locks, thread, when_busy):
            newest = await self.history.newest(thread, owner)
            begun = await begin(start, self.history, thread)
            asked = begun.question.text if begun.question else ""
            numbered(TurnStarted(thread, asked, turn=turn.id, question_id=begun.question_id))
            config = _owned(config_of(thread, begun.head), owner)
            running = run_graph(
                self._graph,
                begun.run_input,
                numbered,
                config=config,
                with_text=with_text,
                tool_names=self._rules.tool_names,
                context=context,
                durability=self._rules.durability,
            )
            if not await _until_done(asyncio.ensure_future(running), turn):
                was = newest.checkpoint["id"] if newest else ""
                numbered(TurnEnded(await finish(self._settle(thread, owner, begun, was))))
            # "exit" keeps no steps, but what was nested and broken off is kept to be resumed
            if self._rules.prune and (self._rules.durability != "exit" or self._rules.has_nested):
                await self._prune(thread)

    async def stop(self, thread_or_turn: str) -> bool:
        """Whether a turn of the acting principal was running there; it has ended when this returns."""
        turn = self._running.find(thread_or_turn, owner_of(acting_principal()))
        if turn is None:
            return False
        turn.stop()
        await asyncio.shield(asyncio.wrap_future(turn.ended))
        return True

    async def _prune(self, thread: str) -> None:
        try:
            await prune_thread(self._graph, self._checkpointer, thread)
        except Exception as error:  # the answer is safe, and the next turn prunes again
            logger.warning("the steps of thread %r stay for now: %s: %s", thread, type(error).__name__, error)

    async def _settle(self, thread: str, owner: str, begun: Begun, was: str) -> dict[str, Any]:
        """Leave a stopped turn's question in the thread, marked; nothing else of it. Returns the turn's outcome."""
        newest = await self.history.newest(thread, owner)
        is_ours = newest is not None and newest.checkpoint["id"] != was
        head = None if is_ours else begun.head  # a branch of which nothing was saved yet is begun here
        values = await self.history.values(thread, head)
        messages = list(values.get("messages") or [])
        if is_ours and messages and isinstance(messages[-1], AIMessage) and not values.get("turn"):
            return dict(values.get("outcome") or {})  # the answer was written down at the last moment
        outcome = {"ending": CANCELLED, "reason": "stopped"}
        question = begun.question or next(
            (message for message in reversed(messages) if isinstance(message, HumanMessage)), None
        )
        config = _owned(config_of(thread, head), owner)
        if newest is None:  # so that there is a point before the question
            await self._graph.aupdate_state(config, {"outcome": outcome}, as_node="commit_answer")
        asked = [cancelled(question)] if question else []
        update = {**emptied(values), "messages": asked, "budget": {}, "outcome": outcome}  # type: ignore[arg-type]
        await self._graph.aupdate_state(config, update, as_node="commit_answer")
        return outcome


async def _until_done(work: asyncio.Task[None], turn: RunningTurn) -> bool:
    """False where the turn was stopped. Raises what the work raised."""
    turn.watch(work)
    try:
        await asyncio.wait([work])
    except asyncio.CancelledError:
        if not turn.is_answered:  # an answer that is out is written down, though nobody waits for it
            work.cancel()
        raise
    finally:
        await wait_out(work)
    if work.cancelled() and turn.is_stopped:
        return False
    work.result()
    return True


def _owned(config: RunnableConfig, owner: str) -> RunnableConfig:
    return config if owner == PUBLIC_OWNER else {**config, "metadata": {OWNER_KEY: owner}}


class _Numbered:
    """Gives each event of a turn its id: the turn's, and a number from 1."""

    def __init__(self, turn: RunningTurn, emit: Callable[[Event], None]) -> None:
        self._turn = turn
        self._emit = emit
        self._last = 0

    def __call__(self, event: Event) -> None:
        self._last += 1
        if isinstance(event, AnswerReady):
            self._turn.is_answered = True
        self._emit(replace(event, event_id=f"{self._turn.id}:{self._last}"))
