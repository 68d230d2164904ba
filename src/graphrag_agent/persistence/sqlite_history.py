"""What a thread's Delta channels are rebuilt from, read from a SQLite file without what is known already.

A state is read back to the last full copy of the thread, which is as long as the thread: at turn 200 half a megabyte,
which LangGraph's own saver copies out of the file in every turn. Here it is fetched once.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import DeltaChannelHistory, get_checkpoint_id
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.checkpoint.sqlite import SqliteSaver

from graphrag_agent.persistence.kept_messages import KeptMessages

try:
    from langgraph.checkpoint.sqlite import _delta
except ImportError:  # another version, which reads in its own way
    _delta = None  # type: ignore[assignment]

_PLACE = "thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?"
_ROW = f"SELECT parent_checkpoint_id, type, length(checkpoint) FROM checkpoints WHERE {_PLACE}"  # noqa: S608
"""SQLite knows a length without reading the value."""
_CHECKPOINT = f"SELECT checkpoint FROM checkpoints WHERE {_PLACE}"  # noqa: S608

ROW_BYTES = 500
"""What a checkpoint without a full copy is counted with."""


class _Held(NamedTuple):
    """What a checkpoint holds of channels' values."""

    copies: dict[str, list[Any]]
    """Channel -> its full copy."""
    others: frozenset[str]
    """Channels whose value is no full copy of a list."""


def read_history(
    saver: SqliteSaver, config: RunnableConfig, channels: Sequence[str]
) -> Mapping[str, DeltaChannelHistory]:
    """As `saver.get_delta_channel_history`; each ancestor's value is fetched once while its row is as long as it was.

    A checkpoint's id stands for one state: what pruning writes into an old one is that state in full, which is longer.
    """
    target, serde = get_checkpoint_id(config), saver.serde
    if _delta is None or not target or not isinstance(serde, KeptMessages):
        return saver.get_delta_channel_history(config=config, channels=channels)
    place = (str(config["configurable"]["thread_id"]), config["configurable"].get("checkpoint_ns", ""))
    chains: dict[str, list[str]] = {channel: [] for channel in channels}
    seeds: dict[str, Any] = {}
    with saver.cursor(transaction=False) as cursor:
        row = cursor.execute(_ROW, (*place, target)).fetchone()
        walked = {target}
        while row and (at := row[0]) and at not in walked and len(seeds) < len(chains):
            walked.add(at)
            if (row := cursor.execute(_ROW, (*place, at)).fetchone()) is None:
                break
            for channel in chains.keys() - seeds.keys():
                chains[channel].append(at)
            seeds |= _seeds(cursor, serde, (*place, at), row[1:], chains.keys() - seeds.keys())
        chained = [channel for channel in chains if chains[channel]]
        statement = _delta.build_delta_stage2_sql(chain_lens=[len(chains[channel]) for channel in chained])
        values = [value for channel in chained for value in (*place, channel, *chains[channel])]
        writes = cursor.execute(statement, values).fetchall() if statement else []
    found: Mapping[str, DeltaChannelHistory] = _delta.build_delta_channels_writes_history(
        channels=list(channels),
        chain_by_ch=chains,
        seed_val_by_ch=seeds,
        seeded=set(seeds),
        stage2_rows=writes,
        serde=serde,
    )
    return found


def _seeds(
    cursor: sqlite3.Cursor, serde: KeptMessages, place: tuple[str, str, str], form: tuple[str, int], wanted: set[str]
) -> dict[str, Any]:
    """The values of the wanted channels that the checkpoint holds."""
    kind, length = form
    held: _Held | None = serde.recall((*place, kind, length))
    if held is None or held.others & wanted:
        (encoded,) = cursor.execute(_CHECKPOINT, place).fetchone()
        # not by our own way to decode, which would keep the copy a second time
        values = JsonPlusSerializer.loads_typed(serde, (kind, encoded)).get("channel_values") or {}
        copies = {
            name: value.value
            for name, value in values.items()
            if isinstance(value, _DeltaSnapshot) and isinstance(value.value, list)
        }
        held = _Held(copies, frozenset(values.keys() - copies.keys()))
        serde.keep((*place, kind, length), held, length if copies else ROW_BYTES)
        if held.others & wanted:
            return {name: values[name] for name in wanted & values.keys()}
    return {name: _DeltaSnapshot(list(held.copies[name])) for name in wanted & held.copies.keys()}
