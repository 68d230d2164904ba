"""Typed events from the parts of a graph's stream."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

from langchain_core.messages import AIMessageChunk
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import StreamMode

from graphrag_agent.citations import Citation
from graphrag_agent.events import (
    AnswerReady,
    CitationFound,
    Event,
    TextDelta,
    ToolEnd,
    ToolStart,
    TurnEnded,
)

MODEL_NODES = ("model", "summarize_on_max_iterations")


async def stream_events(
    graph: CompiledStateGraph[Any, Any, Any, Any], run_input: Any, *, with_text: bool, **options: Any
) -> AsyncIterator[Event]:
    """The events of one run. Without text the model isn't asked to stream, which costs less.

    `options` go to `astream`: config, context, durability.
    """
    modes: list[StreamMode] = ["custom", "messages"] if with_text else ["custom"]
    async for mode, part in graph.astream(run_input, stream_mode=modes, **options):
        for event in _from_custom(part) if mode == "custom" else _from_message(*part):
            yield event


def _from_message(message: Any, metadata: dict[str, Any]) -> Iterator[Event]:
    from_model = isinstance(message, AIMessageChunk) and metadata.get("langgraph_node") in MODEL_NODES
    if from_model and message.text:
        yield TextDelta(message.text, message.id or "")


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
