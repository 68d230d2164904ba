"""What a turn has spent, and whether it may go on. Pure: the clock is the caller's."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from graphrag_agent.context import Budget


@dataclass(frozen=True, slots=True)
class Spent:
    """Counts of the running turn; a dict of it is the `budget` channel."""

    question: str = ""
    """Id of the question that the turn answers; empty between turns."""
    started_at: float = 0.0
    """Unix time in seconds; wall time, since a turn may be resumed by another process."""
    rounds: int = 0
    run: int = 0
    """Tool calls that ran."""
    reused: int = 0
    """Calls answered by an earlier or a parallel identical one."""
    refused: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    @classmethod
    def of(cls, channel: dict[str, Any] | None) -> Spent:
        """From the channel; unknown fields of other versions are ignored."""
        known = {name: value for name, value in (channel or {}).items() if name in cls.__dataclass_fields__}
        return cls(**known)

    @property
    def channel(self) -> dict[str, Any]:
        """JSON-like form for the state; zero counts are left out to keep checkpoints small."""
        return {name: value for name, value in asdict(self).items() if value}

    def plus(self, **counts: int) -> Spent:
        """With these counts added."""
        return replace(self, **{name: getattr(self, name) + count for name, count in counts.items()})


def ending_after_batch(spent: Spent, limits: Budget) -> str:
    """Why no further round may start after this batch of calls; empty when one may."""
    if spent.rounds >= limits.max_rounds:
        return "max_rounds"
    return "max_calls" if spent.run >= limits.max_tool_calls else ""


def is_out_of_time(spent: Spent, limits: Budget, *, now: float) -> bool:
    """Whether the turn has used its seconds; the first round always starts."""
    return spent.rounds > 0 and now - spent.started_at >= limits.max_seconds
