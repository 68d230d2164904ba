"""What tools spent inside their calls: tokens of models that they asked, calls of a nested turn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from graphrag_agent.context import Budget
from graphrag_agent.graph.policy.budget import Spent

M = TypeVar("M", bound=BaseMessage)

COUNTED = {"input_tokens": "input_tokens", "output_tokens": "output_tokens", "tool_calls": "run"}
"""Key of a tool's `usage` -> the count of `budget.Spent` that it adds to."""


def usage_of(results: Iterable[BaseMessage]) -> dict[str, int]:
    """Counts for `Spent.plus`, from the `usage` in the results' artifacts; what is no count is passed over."""
    counts: dict[str, int] = {}
    for result in results:
        artifact = result.artifact if isinstance(result, ToolMessage) else None
        usage = artifact.get("usage") if isinstance(artifact, Mapping) else None
        if not isinstance(usage, Mapping):
            continue
        for key, count in COUNTED.items():
            value = usage.get(key)
            if isinstance(value, int) and value > 0:
                counts[count] = counts.get(count, 0) + value
    return counts


def with_usage(spent: Spent, results: Sequence[BaseMessage], limits: Budget) -> Spent:
    """With what the results cost inside, the calls of families that have a cap among it."""
    spent = spent.plus(**usage_of(results))
    for families in map(_families_in, results):
        spent = spent.plus_families(families, limits)
    return spent


def _families_in(result: BaseMessage) -> dict[str, int]:
    artifact = result.artifact if isinstance(result, ToolMessage) else None
    usage = artifact.get("usage") if isinstance(artifact, Mapping) else None
    families = usage.get("families") if isinstance(usage, Mapping) else None
    counts = families.items() if isinstance(families, Mapping) else ()
    return {str(name): count for name, count in counts if isinstance(count, int) and count > 0}


def newest_results(turn: Sequence[M]) -> list[M]:
    """What came after the turn's last model message. Whoever writes the next one counts their usage, so once."""
    at = max((at for at, message in enumerate(turn) if isinstance(message, AIMessage)), default=-1)
    return list(turn[at + 1 :])
