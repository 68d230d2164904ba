"""Opens a turn: clears what a killed turn left behind and picks the way to the documents."""

from __future__ import annotations

import time
from collections.abc import Sequence

from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.types import Command

from graphrag_agent.graph.loop import Loop
from graphrag_agent.graph.policy.budget import Spent
from graphrag_agent.graph.prompts.building import CANCELLED
from graphrag_agent.graph.state import TurnState, emptied


def start_turn(loop: Loop, state: TurnState, config: RunnableConfig) -> Command[str]:
    """An empty turn for the newest question; the question of a killed turn is marked as cancelled."""
    protocol = loop.request().protocol  # a request that can't be served fails here, before anything is spent
    messages = state.get("messages") or []
    question = next((message for message in reversed(messages) if isinstance(message, HumanMessage)), None)
    now = time.time()
    started = Spent.begin((question and question.id) or "", now=now)
    cancelled = _cancelled(messages, Spent.of(state.get("budget"), now=now).question, started.question)
    update = {**({"messages": cancelled} if cancelled else {}), **emptied(state), "budget": started.at(now)}
    return Command(update=update, goto="retrieve_once" if protocol == "one_shot" else "model")


def _cancelled(messages: Sequence[BaseMessage], killed: str, current: str) -> list[BaseMessage]:
    """The killed turn's question, marked; it keeps its id and so its place."""
    if not killed or killed == current:
        return []
    return [
        message.model_copy(update={"additional_kwargs": {**message.additional_kwargs, "ending": CANCELLED}})
        for message in messages
        if message.id == killed
    ]
