"""Whether the turn still finds something new."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import BaseMessage, ToolMessage

from graphrag_agent.graph.policy.pairing import calls_of
from graphrag_agent.graph.policy.result_budget import has_left_out
from graphrag_agent.tools.evidence_message import chunk_ids_of, hits_of
from graphrag_agent.tools.registry import ToolRegistry
from graphrag_agent.tools.spec import SEARCH_FAMILY


def fruitless_rounds(turn: Sequence[BaseMessage], tools: ToolRegistry) -> int:
    """Rounds in a row, up to the last one, that searched and found no evidence that was new.

    A round without a search, or whose searches all failed, neither counts nor breaks the row.
    """
    results = {message.tool_call_id: message for message in turn if isinstance(message, ToolMessage)}
    known: set[str] = set()
    row = 0
    for message in turn:
        names = {call["id"]: call["name"] for call in calls_of(message)}
        searched = [
            results[id_]
            for id_, name in names.items()
            if id_ in results and results[id_].status != "error" and _is_search(name, tools)
        ]
        found = {chunk for id_ in names if id_ in results for chunk in chunk_ids_of(results[id_])}
        if found - known:
            row = 0
        elif searched:
            row += 1
        known |= found
    return row


def queries_without_hits(turn: Sequence[BaseMessage], tools: ToolRegistry) -> list[str]:
    """What was searched for and not found, in nested turns too: the gaps of an answer."""
    results = {message.tool_call_id: message for message in turn if isinstance(message, ToolMessage)}
    calls = [call for message in turn for call in calls_of(message) if _is_search(call["name"], tools)]
    empty = [
        str(call["args"].get("query", ""))
        for call in calls
        if isinstance(call["args"], dict)
        and (result := results.get(call["id"])) is not None
        and result.artifact is not None
        and result.status != "error"
        and not hits_of(result)
        and not has_left_out(result)
    ]
    nested = [gap for result in results.values() for gap in _gaps_in(result.artifact)]
    return [query for query in dict.fromkeys([*empty, *nested]) if query]


def _gaps_in(artifact: Any) -> list[str]:
    gaps = artifact.get("gaps") if isinstance(artifact, Mapping) else None
    return [gap for gap in gaps if isinstance(gap, str)] if isinstance(gaps, list | tuple) else []


def _is_search(name: str, tools: ToolRegistry) -> bool:
    return name in tools and tools[name].family == SEARCH_FAMILY
