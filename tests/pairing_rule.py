"""The rule of providers for calls and their results, written apart from the code that keeps it."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.messages import BaseMessage, ToolMessage

from graphrag_agent.graph.policy.pairing import calls_of


def pairing_problems(messages: Sequence[BaseMessage]) -> list[str]:
    """What a provider would refuse in this list; empty when it is sound."""
    problems = []
    at = 0
    while at < len(messages):
        message = messages[at]
        at += 1
        if isinstance(message, ToolMessage):
            problems.append(f"tool message {message.tool_call_id!r} follows no call")
            continue
        ids = [call["id"] for call in calls_of(message)]
        if len(set(ids)) < len(ids) or not all(ids):
            problems.append(f"call ids are missing or repeated: {ids!r}")
        results = messages[at : at + len(ids)]
        if [getattr(result, "tool_call_id", None) for result in results] != ids:
            problems.append(f"calls {ids!r} are not answered at once and in order")
        problems += [f"the result of call {result.id!r} is empty" for result in results if not result.content]
        at += len(ids)
    return problems
