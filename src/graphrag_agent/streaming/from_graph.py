"""Typed events from the parts of a graph's stream."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

from langchain_core.messages import AIMessageChunk
from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import StreamMode

from graphrag_agent.citations import Citation
from graphrag_agent.events import (
    AnswerReady,
    CitationFound,
    ClientToolsRequested,
    Event,
    TextDelta,
    ThinkingDelta,
    ToolEnd,
    ToolStart,
    TurnEnded,
)

MODEL_NODES = ("model", "summarize_on_max_iterations")


async def stream_events(
    graph: CompiledStateGraph[Any, Any, Any, Any],
    run_input: Any,
    *,
    config: RunnableConfig,
    with_text: bool,
    **options: Any,
) -> AsyncIterator[Event]:
    """The events of one run. Without text the model isn't asked to stream, which costs less.

    `options` go to `astream`: context, durability. The graph needs a checkpointer to wait for a client's tools.
    """
    is_answered = False
    modes: list[StreamMode] = ["custom", "messages"] if with_text else ["custom"]
    async for mode, part in graph.astream(run_input, config, stream_mode=modes, **options):
        for event in _from_custom(part) if mode == "custom" else _from_message(*part):
            is_answered = is_answered or isinstance(event, AnswerReady)
            yield event
    if not is_answered and graph.checkpointer:
        interrupts = (await graph.aget_state(config)).interrupts
        calls = [call for item in interrupts for call in _client_calls(item.value)]
        if calls:
            yield ClientToolsRequested(tuple(calls))


def _client_calls(value: Any) -> list[dict[str, Any]]:
    """The calls of an interrupt of ours; a tool of the user's may interrupt for reasons of its own."""
    calls = value.get("client_tools", []) if isinstance(value, dict) else []
    return calls if isinstance(calls, list) else []


def _from_message(message: Any, metadata: dict[str, Any]) -> Iterator[Event]:
    if not isinstance(message, AIMessageChunk) or metadata.get("langgraph_node") not in MODEL_NODES:
        return
    if thought := _thought(message):
        yield ThinkingDelta(thought, message.id or "")
    if message.text:
        yield TextDelta(message.text, message.id or "")


def _thought(message: AIMessageChunk) -> str:
    """What reasoning models stream beside their answer: a field of its own, or blocks of the content."""
    aside = message.additional_kwargs.get("reasoning_content")
    blocks = message.content if isinstance(message.content, list) else []
    parts = [
        str(block.get(block["type"]) or block.get("text") or "")
        for block in blocks
        if isinstance(block, dict) and block.get("type") in ("thinking", "reasoning")
    ]
    return "".join([str(aside or ""), *parts])


def _from_custom(part: Any) -> Iterator[Event]:
    fields = dict(part) if isinstance(part, dict) else {}
    kind = fields.pop("event", None)  # a user's tool may write whatever it likes
    if kind == "tool_start":
        yield ToolStart(**fields)
    elif kind == "tool_end":
        yield ToolEnd(**fields)
    elif kind == "answer":
        citations = tuple(Citation(**citation) for citation in fields["citations"])
        yield from map(CitationFound, citations)
        yield AnswerReady(fields["text"], fields["message_id"], citations)
        yield TurnEnded(fields["outcome"])
