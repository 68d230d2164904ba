"""Turns timed: CPU of this process (all its threads), wall, time to the first token of the answer."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from benchmarks.agent_loop.contenders import Contender
from benchmarks.agent_loop.script import ANSWER_TOKENS, QUESTION, answer

Metrics = dict[str, Any]
"""JSON-like values by name."""


class Sample(NamedTuple):
    """One or several turns; milliseconds a turn."""

    cpu: float
    wall: float
    first_token: float = 0.0


async def time_turns(run: Callable[[], Awaitable[float]], turns: int = 1) -> Sample:
    """The mean of so many turns one after the other; `run` gives its seconds to the first token, or 0."""
    gc.collect()
    first_tokens = []
    cpu, wall = time.process_time(), time.perf_counter()
    for _ in range(turns):
        first_tokens.append(await run())
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return Sample(1000 * cpu / turns, 1000 * wall / turns, 1000 * statistics.fmean(first_tokens))


async def ask_once(contender: Contender, thread: str, *, tokens: int = ANSWER_TOKENS) -> float:
    """One turn, whole; the answer must be the scripted one of so many tokens."""
    _check(contender, await contender.ask(QUESTION, thread), tokens)
    return 0.0


async def stream_once(contender: Contender, thread: str) -> float:
    """One turn read token by token: seconds to the first token of its answer."""
    began, first, pieces = time.perf_counter(), 0.0, []
    async for piece in contender.stream(QUESTION, thread):
        first = first or time.perf_counter() - began
        pieces.append(piece)
    _check(contender, "".join(pieces), ANSWER_TOKENS)
    return first


def summarized(samples: Sequence[Sample], model_calls: float) -> Metrics:
    """Medians of the samples, the best CPU, and what a model call's share is."""
    cpu, wall, first = (statistics.median(values) for values in zip(*samples, strict=True))
    metrics: Metrics = {
        "cpu_ms": round(cpu, 2),
        "cpu_ms_best": round(min(sample.cpu for sample in samples), 2),
        "cpu_ms_per_round": round(cpu / model_calls, 2),
        "wall_ms": round(wall, 1),
        "wall_ms_per_round": round(wall / model_calls, 1),
    }
    return {**metrics, "first_token_ms": round(first, 1)} if first else metrics


def with_ratio(rows: dict[str, Metrics], key: str, to: str) -> dict[str, Metrics]:
    """The rows with `key` divided by that of row `to`, as `ratio`."""
    return {name: {**row, "ratio": round(row[key] / rows[to][key], 3)} for name, row in rows.items()}


def _check(contender: Contender, text: str, tokens: int) -> None:
    if text != answer(tokens):
        raise RuntimeError(f"{contender.name} gave another answer than the script's: {text[:200]!r}")
