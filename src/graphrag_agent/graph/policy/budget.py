"""What a turn has spent, and whether it may go on. Pure: the clock is the caller's."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from graphrag_agent.context import Budget

PROCESS = uuid.uuid4().hex[:8]
"""Tells this process from the one that a turn was killed in."""


@dataclass(frozen=True, slots=True)
class Spent:
    """Counts of the running turn; a dict of it is the `budget` channel."""

    question: str = ""
    """Id of the question that the turn answers; empty between turns."""
    started_at: float = 0.0
    """Unix time in seconds, moved forward by the time that the turn lay still."""
    seconds: float = 0.0
    """Spent when this was written."""
    process: str = ""
    """Which process wrote it."""
    rounds: int = 0
    run: int = 0
    """Tool calls that ran."""
    families: Mapping[str, int] = field(default_factory=dict)
    """Tool calls that ran, by family; only those with a cap."""
    family_limits: Mapping[str, int] = field(default_factory=dict)
    """Of a nested turn: the calls of a family that the outer one has left for it, where that is less than its cap."""
    reused: int = 0
    """Calls answered by an earlier or a parallel identical one."""
    refused: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    reason: str = ""
    """Why the turn ended as it did, where the ending alone doesn't say."""

    @classmethod
    def of(cls, channel: Mapping[str, Any] | None, *, now: float) -> Spent:
        """From the channel; unknown fields of other versions are ignored.

        A turn that another process wrote was killed and is resumed: the time between doesn't count.
        """
        known = {name: value for name, value in (channel or {}).items() if name in cls.__dataclass_fields__}
        spent = cls(**known)
        return spent if spent.process in ("", PROCESS) else spent.resumed(now)

    @classmethod
    def begin(cls, question: str, *, now: float, family_limits: Mapping[str, int] | None = None) -> Spent:
        """Nothing spent yet."""
        return cls(question=question, started_at=round(now, 3), family_limits=family_limits or {})

    def resumed(self, now: float) -> Spent:
        """The clock goes on from where it stood when this was written."""
        return replace(self, started_at=round(now - self.seconds, 3), process=PROCESS)

    def at(self, now: float) -> dict[str, Any]:
        """The channel's value, JSON-like; zero counts are left out to keep checkpoints small."""
        written = replace(self, seconds=round(now - self.started_at, 3), process=PROCESS)
        values = ((name, getattr(written, name)) for name in self.__dataclass_fields__)
        return {name: dict(value) if isinstance(value, Mapping) else value for name, value in values if value}

    def plus(self, **counts: int) -> Spent:
        """With these counts added."""
        return replace(self, **{name: getattr(self, name) + count for name, count in counts.items()})

    def plus_families(self, families: Iterable[str] | Mapping[str, int], limits: Budget) -> Spent:
        """With a call counted for each of the families, or so many of each, that have a cap."""
        added = {family: count for family, count in Counter(families).items() if family in limits.max_family_calls}
        counts = {family: self.families.get(family, 0) + count for family, count in added.items()}
        return replace(self, families={**self.families, **counts}) if counts else self


def family_calls_left(spent: Spent, limits: Budget) -> dict[str, int]:
    """Family -> calls that may still run, for those with a cap."""
    caps = {
        family: min(most, spent.family_limits.get(family, most)) for family, most in limits.max_family_calls.items()
    }
    return {family: most - spent.families.get(family, 0) for family, most in caps.items()}


def ending_after_batch(spent: Spent, limits: Budget) -> str:
    """Why no further round may start after this batch of calls; empty when one may."""
    if spent.rounds >= limits.max_rounds:
        return "max_rounds"
    return "max_calls" if spent.run >= limits.max_tool_calls else ""


def seconds_left(spent: Spent, limits: Budget, *, now: float) -> float:
    """Seconds until the turn is over; below zero after that."""
    return spent.started_at + limits.max_seconds - now


def describe_left(spent: Spent, limits: Budget, *, now: float) -> str:
    """What is left, for the model."""
    left = [
        f"{limits.max_rounds - spent.rounds} rounds",
        f"{limits.max_tool_calls - spent.run} tool calls",
        f"{max(0, round(seconds_left(spent, limits, now=now)))} seconds",
    ]
    left += [f"{most} {family} calls" for family, most in family_calls_left(spent, limits).items()]
    return f"Left in this turn: {', '.join(left)}."
