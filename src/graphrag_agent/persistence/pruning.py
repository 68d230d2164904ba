"""Drops the checkpoints of a committed turn's steps, and with them its tool results.

A Delta channel is rebuilt from the writes after its ancestors, so a step that goes must leave its writes behind: they
move to the checkpoint before, in step order, as durability "exit" stores them. Where a later write overwrote the rest,
or the checkpoint before has other children, the kept checkpoint gets the value itself. What a nested graph kept inside
a step that is no longer there goes whole.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langgraph.channels import DeltaChannel
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.types import Overwrite

from graphrag_agent.persistence.rows import rows_of
from graphrag_agent.persistence.steps import Move, Plan, Step, ThreadRows, WriteKey

PAGE = 24
"""Checkpoints read at once: a turn of some rounds has fewer."""

MISSING = object()


async def prune_thread(graph: Any, saver: BaseCheckpointSaver[Any], thread: str, *, thorough: bool = False) -> int:
    """Remove the steps of the newest finished turn, and of those before it back to one without; how many went.

    Kept are the end of every turn of every branch, the first checkpoint, unfinished turns, and checkpoints from which
    several branches go on. Only for the owner of the thread's lock: a run that loads the thread meanwhile may miss a
    message. A nested graph that keeps a state of its own over all turns is left alone, as is a checkpointer that isn't
    ours.

    `graph` is compiled over the saver; its channels are read. `thorough` looks at every branch instead of the newest.
    """
    rows = rows_of(saver)
    if rows is None:
        return 0
    channels = {name: channel for name, channel in graph.channels.items() if isinstance(channel, DeltaChannel)}
    links = await rows.links(thread)
    thread_steps = _Steps(rows, thread, tuple(channels), links)
    runs = await thread_steps.runs(thorough=thorough)
    plan = await _Planning(rows, saver, thread, channels, thread_steps).plan(runs) if runs else Plan()
    kept = links.keys() - set(plan.gone)
    plan.nested = [name for name, began_at in (await rows.nested(thread)).items() if began_at not in kept]
    if plan.gone or plan.nested:
        await rows.apply(thread, plan)
    return len(plan.gone)


@dataclass(frozen=True, slots=True)
class _Run:
    """A row of steps to remove, oldest first, between two checkpoints that stay."""

    top: str
    steps: tuple[str, ...]
    child: str


class _Steps:
    """A thread's checkpoints, read as they are needed."""

    def __init__(
        self, rows: ThreadRows, thread: str, channels: tuple[str, ...], links: Mapping[str, str | None]
    ) -> None:
        self._rows, self._thread, self._channels, self._links = rows, thread, channels, links
        self._read: dict[str, Step] = {}
        self.children: dict[str, list[str]] = {}
        for id_, parent in links.items():
            if parent is not None:
                self.children.setdefault(parent, []).append(id_)

    async def get(self, id_: str) -> Step:
        if id_ not in self._read:
            await self.read(self._back_from(id_))
        return self._read[id_]

    async def read(self, ids: Sequence[str]) -> None:
        self._read |= await self._rows.steps(self._thread, ids, self._channels)

    def parent(self, id_: str) -> str | None:
        """The checkpoint before, if it is there."""
        parent = self._links[id_]
        return parent if parent in self._links else None

    async def runs(self, *, thorough: bool) -> list[_Run]:
        """What can go, newest first."""
        if not self._links:
            return []
        if thorough:
            await self.read(list(self._links))
            starts = [id_ for id_, step in self._read.items() if step.is_finished]
        else:
            newest: str | None = max(self._links)
            while newest is not None and not (await self.get(newest)).is_finished:
                newest = self.parent(newest)
            starts = [newest] if newest is not None else []
        found: dict[str, _Run] = {}
        for start in starts:
            child: str | None = start
            while child is not None and child not in found:
                run = await self._run_before(child)
                if run is None:
                    break
                found[child] = run
                child = run.top
        return list(found.values())

    async def _run_before(self, child: str) -> _Run | None:
        """The steps between this checkpoint and the one before that stays; None without any."""
        steps: list[str] = []
        at = self.parent(child)
        while at is not None and not await self._stays(at):
            steps.append(at)
            at = self.parent(at)
        return _Run(at, tuple(reversed(steps)), child) if steps and at is not None else None

    async def _stays(self, id_: str) -> bool:
        is_first = self.parent(id_) is None
        return is_first or len(self.children[id_]) > 1 or (await self.get(id_)).is_finished

    def _back_from(self, id_: str) -> list[str]:
        page: list[str] = []
        at: str | None = id_
        while at is not None and len(page) < PAGE:
            page.append(at)
            at = self.parent(at)
        return page


class _Planning:
    """Where the writes of the steps go."""

    def __init__(
        self,
        rows: ThreadRows,
        saver: BaseCheckpointSaver[Any],
        thread: str,
        channels: Mapping[str, DeltaChannel[Any]],
        steps: _Steps,
    ) -> None:
        self._rows, self._saver, self._thread = rows, saver, thread
        self._channels, self._steps = channels, steps

    async def plan(self, runs: Sequence[_Run]) -> Plan:
        plan = Plan()
        ids = {id_ for run in runs for id_ in (run.top, *run.steps)}
        keys: dict[tuple[str, str], list[WriteKey]] = {}
        for key in sorted(await self._rows.write_keys(self._thread, ids, self._channels), key=_place):
            keys.setdefault((key.checkpoint, key.channel), []).append(key)
        for run in runs:
            plan.gone += run.steps
            plan.parents[run.child] = run.top
            for channel in self._channels:
                written = [(id_, key) for id_ in (run.top, *run.steps) for key in keys.get((id_, channel), ())]
                await self._settle(plan, run, channel, written)
        after = {run.steps[0]: run.child for run in runs}
        for top in {run.top for run in runs}:
            children = [after.get(child, child) for child in self._steps.children[top]]
            for channel in self._channels:
                if keys.get((top, channel)) and await self._all_hold(plan, children, channel):
                    plan.dead.append((top, channel))
        return plan

    async def _settle(self, plan: Plan, run: _Run, channel: str, written: Sequence[tuple[str, WriteKey]]) -> None:
        if channel in (await self._steps.get(run.child)).held:
            return
        value = await self._overwritten(written)
        is_rebuilt = len(self._steps.children[run.top]) == 1
        top = await self._steps.get(run.top)
        for id_ in run.steps:
            is_rebuilt = is_rebuilt and not (await self._steps.get(id_)).adds_copy(channel, top)
        if value is MISSING and not is_rebuilt:
            value = await self._value(run.child, channel)
        if value is not MISSING:
            plan.values.setdefault(run.child, {})[channel] = value
            return
        for at, (id_, key) in enumerate(written):
            number = (await self._steps.get(id_)).number
            plan.moves.append(Move(key, run.top, _task_of(number, at, id_)))

    async def _overwritten(self, written: Sequence[tuple[str, WriteKey]]) -> Any:
        """What the last write replaced everything with; MISSING where it adds to what was there."""
        if not written:
            return MISSING
        (value,) = await self._rows.written(self._thread, [written[-1][1]])
        is_reset = isinstance(value, Overwrite) and value.value is not None
        return value.value if is_reset else MISSING

    async def _value(self, id_: str, channel: str) -> Any:
        config: Any = {"configurable": {"thread_id": self._thread, "checkpoint_ns": "", "checkpoint_id": id_}}
        history = await self._saver.aget_delta_channel_history(config=config, channels=[channel])
        rebuilt = self._channels[channel].from_checkpoint(history[channel].get("seed"))
        rebuilt.replay_writes(history[channel]["writes"])
        return rebuilt.get()

    async def _all_hold(self, plan: Plan, ids: Sequence[str], channel: str) -> bool:
        for id_ in ids:
            if channel not in plan.values.get(id_, {}) and channel not in (await self._steps.get(id_)).held:
                return False
        return True


def _place(key: WriteKey) -> tuple[str, str, int]:
    """The order in which LangGraph replays the writes of one step."""
    return key.task_path, key.task, key.place


def _task_of(number: int, at: int, checkpoint: str) -> str:
    """A task id that sorts by step and then by place, in the shape that LangGraph gives to those of "exit"."""
    return f"{number + 1:08d}-{at:04x}-4000-8000-{uuid.UUID(checkpoint).hex[-12:]}"
