"""Typed events from one run of a graph."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import CompiledStateGraph

from graphrag_agent.citations import Citation
from graphrag_agent.events import (
    AnswerReady,
    CitationFound,
    ClientToolsRequested,
    Event,
    LoopEvent,
    ToolEnd,
    ToolProgress,
    ToolStart,
    TurnEnded,
)
from graphrag_agent.streaming.text_watch import TextWatch


async def run_graph(
    graph: CompiledStateGraph[Any, Any, Any, Any],
    run_input: Any,
    emit: Callable[[Event], None],
    *,
    config: RunnableConfig,
    with_text: bool,
    tool_names: Collection[str] = (),
    **options: Any,
) -> None:
    """One run; its events are emitted as they happen. Without text the model isn't asked to stream, which costs less.

    `tool_names`: tools to which a model may write calls as text. `options` go to `astream`: context, durability. The
    graph needs a checkpointer to wait for a client's tools.
    """
    is_answered = False
    watched: RunnableConfig = {**config, "callbacks": [TextWatch(emit, tool_names=tool_names)]} if with_text else config
    async for part in graph.astream(run_input, watched, stream_mode="custom", **options):
        for event in _from_custom(part):
            is_answered = is_answered or isinstance(event, AnswerReady)
            emit(event)
    if not is_answered and graph.checkpointer:
        interrupts = (await graph.aget_state(_newest(config))).interrupts
        calls = [call for item in interrupts for call in _client_calls(item.value)]
        if calls:
            emit(ClientToolsRequested(tuple(calls)))


def _newest(config: RunnableConfig) -> RunnableConfig:
    """Where the run has come to: the checkpoint that a branch begins at knows nothing of it."""
    place = {name: value for name, value in config.get("configurable", {}).items() if name != "checkpoint_id"}
    return {**config, "configurable": place}


def _client_calls(value: Any) -> list[dict[str, Any]]:
    """The calls of an interrupt of ours; a tool of the user's may interrupt for reasons of its own."""
    calls = value.get("client_tools", []) if isinstance(value, dict) else []
    return calls if isinstance(calls, list) else []


def _from_custom(part: Any) -> Iterator[Event]:
    if not isinstance(part, LoopEvent):
        return
    fields = dict(part)
    kind = fields.pop("event")
    if kind == "tool_start":
        yield ToolStart(**fields)
    elif kind == "tool_progress":
        yield ToolProgress(**fields)
    elif kind == "tool_end":
        yield ToolEnd(**fields)
    elif kind == "answer":
        citations = tuple(Citation(**citation) for citation in fields["citations"])
        yield from map(CitationFound, citations)
        yield AnswerReady(fields["text"], fields["message_id"], citations)
        yield TurnEnded(fields["outcome"])
