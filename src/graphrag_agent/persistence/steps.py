"""What pruning needs to know of a thread, and what it wants done, without a word of SQL."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

START_CHANNEL, TASKS_CHANNEL, TRIGGER = "__start__", "__pregel_tasks", "branch:to:"
"""LangGraph's channels that hold what is still to run: an input, a Send, a node's trigger."""


class Step(NamedTuple):
    """One checkpoint, without its values."""

    parent: str | None
    number: int
    """LangGraph's count of the step; -1 for an input."""
    is_finished: bool
    """Nothing is left to run: the end of a turn. (The empty stub that "exit" begins a thread with is none.)"""
    held: frozenset[str]
    """Delta channels whose whole value it holds, or shares with the checkpoints before that had the same version."""
    copied: frozenset[str]
    """Those of which a copy was made here."""
    versions: Mapping[str, str]
    """Versions of the Delta channels, where values are shared by version; else empty."""

    def adds_copy(self, channel: str, before: Step) -> bool:
        """Whether it holds a value that the checkpoint before doesn't."""
        is_other = self.versions.get(channel) != before.versions.get(channel)
        return channel in self.copied or (channel in self.held and is_other)


class WriteKey(NamedTuple):
    """Where a task's write of a channel lies."""

    checkpoint: str
    channel: str
    task_path: str
    task: str
    place: int


class Move(NamedTuple):
    """A write goes to an earlier checkpoint; its task's name gives it its place among those moved there."""

    key: WriteKey
    checkpoint: str
    task: str


@dataclass(slots=True)
class Plan:
    """What to change in a thread, in one transaction."""

    gone: list[str] = field(default_factory=list)
    """Checkpoints to remove, with their writes."""
    parents: dict[str, str] = field(default_factory=dict)
    """Kept checkpoint -> its new parent."""
    moves: list[Move] = field(default_factory=list)
    values: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Kept checkpoint -> channel -> the whole value, which it now holds itself."""
    dead: list[tuple[str, str]] = field(default_factory=list)
    """(Kept checkpoint, channel) whose writes nothing is rebuilt from any more."""
    nested: list[str] = field(default_factory=list)
    """Namespaces of nested graphs to remove with all their rows."""


class ThreadHead(NamedTuple):
    """A thread by its newest checkpoint."""

    thread: str
    checkpoint: str
    owner: str
    """As `identity.owner_of` has it."""


class ThreadIndex(Protocol):
    """The threads of a checkpointer. One that has nothing but the empty stub of "exit" isn't there yet."""

    async def heads(self, *, owner: str | None, limit: int, before: str) -> list[ThreadHead]:
        """The owner's threads, or everybody's for None, the newest first; from `before` on where it isn't empty."""

    async def head(self, thread: str) -> ThreadHead | None:
        """The thread, if it is there."""

    async def links(self, thread: str) -> dict[str, str | None]:
        """Every checkpoint of the thread's own graph (not of nested ones) and its parent."""

    async def erase(self, threads: Sequence[tuple[str, str | None]]) -> list[str]:
        """Delete these threads, unless one has got another newest checkpoint than the one given; which went."""

    async def compact(self) -> None:
        """Give the room of what was deleted back."""


class ThreadRows(ThreadIndex, Protocol):
    """A thread's rows in a database. Every call is one transaction."""

    async def steps(self, thread: str, ids: Collection[str], channels: Collection[str]) -> dict[str, Step]:
        """These checkpoints; `channels` are the Delta channels."""

    async def write_keys(self, thread: str, ids: Collection[str], channels: Collection[str]) -> list[WriteKey]:
        """What was written to these channels after these checkpoints, in no order."""

    async def nested(self, thread: str) -> dict[str, str]:
        """Namespaces of graphs that ran inside a task of the thread -> the checkpoint that the task began at.

        Empty where no row says which. A nested graph that keeps a state of its own over all turns is none of them.
        """

    async def written(self, thread: str, keys: Sequence[WriteKey]) -> list[Any]:
        """The values of these writes."""

    async def apply(self, thread: str, plan: Plan) -> None:
        """Carry the plan out, or nothing of it."""


def is_of_task(namespace: str) -> bool:
    """Whether the namespace is that of a graph inside one task, as "node:task id"; "node" alone outlives tasks."""
    return ":" in namespace.partition("|")[0]


def is_finished(metadata: Mapping[str, Any], values: Mapping[str, Any]) -> bool:
    """Whether nothing was left to run at a checkpoint with these values."""
    waits = values.get(TASKS_CHANNEL) or any(name.startswith(TRIGGER) or name == START_CHANNEL for name in values)
    return bool(metadata) and not waits
