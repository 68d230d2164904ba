"""The scenarios: each gives its metrics for every contender."""

from __future__ import annotations

import asyncio
import itertools
import statistics
import time
import uuid
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import openai

from benchmarks.agent_loop.contenders import AGENT, BARE, Contender, Durability, open_contenders
from benchmarks.agent_loop.measuring import Metrics, Sample, ask_once, stream_once, summarized, time_turns, with_ratio
from benchmarks.agent_loop.script import (
    CALL_DONE_SECONDS,
    MESSAGE_DONE_SECONDS,
    MODEL_CALLS,
    QUESTION,
    SAME_SEARCH,
    SHORT,
    SLOW_TOOL_SECONDS,
)

Rows = dict[str, Metrics]
Turn = Callable[[Contender, str], Awaitable[float]]
WINDOW = 15
"""Turns at the end of a long thread that are measured: as many as lie between two full copies of a Delta channel."""
COPIED_WINDOW = 2
"""The same where a turn costs seconds and every turn the same."""
EAGER_SAMPLES = 5
EAGER_WAITS = (
    (CALL_DONE_SECONDS + 0.02, MESSAGE_DONE_SECONDS - 0.035),
    (MESSAGE_DONE_SECONDS + 0.1, MESSAGE_DONE_SECONDS + SLOW_TOOL_SECONDS - 0.035),
)
"""Seconds since its start in which an `eager` turn waits, whoever's it is: for its message; for its tool."""
BREAK_SECONDS = 0.01
PATIENCE_SECONDS = 4.0
"""After this a turn that doesn't end is cut off."""
RECURSION_LIMIT = 25
"""LangGraph's default of old, and what most code sets; today's default is above 9000."""


@dataclass(frozen=True)
class Bench:
    """What all scenarios are run with."""

    url: str
    folder: Path
    """For SQLite files."""
    repeat: int = 7
    """Samples of each contender, interleaved."""
    turns: int = 5
    """Turns in a sample of a cheap scenario."""
    at_most: int = 1000
    """Cuts the length of threads and the number of turns at once."""
    gap_ms: float = 2.0
    """Between two tokens of a paced stream."""
    durability: Durability = "exit"
    """Of our graph; None: LangGraph's default, as for the others."""

    def open(self, script: str, **options: Any) -> AbstractAsyncContextManager[list[Contender]]:
        """The contenders on this script."""
        return open_contenders(self.url, script, durability=self.durability, **options)

    def sqlite(self) -> Path:
        """A new folder for the files of one scenario."""
        folder = self.folder / uuid.uuid4().hex
        folder.mkdir()
        return folder

    async def model_calls(self) -> int:
        """How many requests the server had so far."""
        async with openai.DefaultAsyncHttpxClient() as client:
            return int((await client.get(self.url)).text)


async def new_thread(bench: Bench) -> Rows:
    """Three rounds of two searches, then 200 tokens; a new thread each turn, nothing streamed, in memory."""
    async with bench.open("three_rounds") as contenders:
        return await _fresh_threads(bench, contenders, ask_once, bench.turns)


async def streamed(bench: Bench) -> Rows:
    """The same read token by token, the tokens of the model coming one after the other."""
    async with bench.open(f"three_rounds@{bench.gap_ms}", streaming=True) as contenders:
        return await _fresh_threads(bench, contenders, stream_once, 1)


async def burst(bench: Bench) -> Rows:
    """The same where all tokens of a message arrive at once."""
    async with bench.open("three_rounds", streaming=True) as contenders:
        return await _fresh_threads(bench, contenders, stream_once, bench.turns)


async def thread20(bench: Bench) -> Rows:
    """Turn 20 of a thread in memory, nothing streamed."""
    before = min(20, bench.at_most) - 1
    async with bench.open("three_rounds") as contenders:
        for contender, number in itertools.product(contenders, range(bench.repeat)):
            await contender.grow(f"long-{number}", before)
        taken = await _samples(contenders, bench.repeat, lambda c, number: ask_once(c, f"long-{number}"))
    return _compared(taken)


async def sqlite50(bench: Bench) -> Rows:
    """Turn 50 on SQLite beside turn 1."""
    return await _growth(bench, 50)


async def sqlite200(bench: Bench) -> Rows:
    """Turn 200 on SQLite beside turn 1."""
    return await _growth(bench, 200)


async def eager(bench: Bench) -> Rows:
    """The call is complete at 50 ms, its message ends at 500 ms, its tool takes 300 ms: when is the answer there?"""
    rows: Rows = {}
    async with (
        bench.open("eager", streaming=True, delay_seconds=SLOW_TOOL_SECONDS) as contenders,
        bench.open("brief", streaming=True) as others,
    ):
        await _warm_up([*contenders, *others], partial(ask_once, tokens=SHORT))
        for contender, other in zip(contenders, others, strict=True):
            walls = [await _eager_wall(contender, other) for _ in range(min(bench.repeat, EAGER_SAMPLES))]
            alone = [await _eager_wall(contender) for _ in range(min(bench.repeat, EAGER_SAMPLES))]
            rows[contender.name] = {
                "wall_ms": round(statistics.median(walls), 1),
                "wall_ms_best": round(min(walls), 1),
                "wall_ms_alone": round(statistics.median(alone), 1),
            }
    return with_ratio(rows, "wall_ms", AGENT)


async def _eager_wall(contender: Contender, other: Contender | None = None) -> float:
    """Milliseconds of a turn, with small turns of another like it while this one waits, or without."""
    beside: list[asyncio.Task[None]] = []

    async def turn() -> float:
        if other:
            beside.append(asyncio.create_task(_small_turns(other)))
        try:
            return await ask_once(contender, uuid.uuid4().hex, tokens=SHORT)
        finally:
            for task in beside:
                task.cancel()

    sample = await time_turns(turn)
    await asyncio.gather(*beside, return_exceptions=True)
    return sample.wall


async def _small_turns(contender: Contender) -> None:
    """Turns with breaks between them while an `eager` turn waits for its model or its tool: a process that is in use.

    A process that only waits is another thing: some machines put what wasn't touched for a tenth of a second out of
    reach, and then each page of code and data costs 20 to 40 microseconds to touch again, for any loop.
    """
    loop = asyncio.get_running_loop()
    began = loop.time()
    while True:
        await asyncio.sleep(BREAK_SECONDS)
        if any(since <= loop.time() - began <= until for since, until in EAGER_WAITS):
            await ask_once(contender, uuid.uuid4().hex, tokens=SHORT)


async def repeated(bench: Bench) -> Rows:
    """One search asked for six times, each spelt otherwise: how many ran?"""
    rows: Rows = {}
    async with bench.open("repeated") as contenders:
        for contender in contenders:
            await ask_once(contender, "repeated")
            asked = sum(map(len, SAME_SEARCH))
            rows[contender.name] = {"searches_asked": asked, "searches_run": contender.knowledge.searches}
    return rows


async def runaway(bench: Bench) -> Rows:
    """The model calls a tool in every message that may have one: what comes out?"""
    rows: Rows = {}
    async with bench.open("runaway") as contenders:
        for contender in contenders:
            before, began = await bench.model_calls(), time.perf_counter()
            row: Metrics = {"result": await _result_of(contender, "endless")}
            row["wall_ms"] = round(1000 * (time.perf_counter() - began), 1)
            row["model_calls"] = await bench.model_calls() - before
            row["searches_run"] = contender.knowledge.searches
            if contender.name != BARE:
                limited = await _result_of(contender, "limited", recursion_limit=RECURSION_LIMIT)
                row[f"result_at_limit_{RECURSION_LIMIT}"] = limited
            rows[contender.name] = row
    return rows


async def hundred(bench: Bench) -> Rows:
    """A hundred turns at once on SQLite, each in a thread of its own."""
    count = min(100, bench.at_most)

    async def at_once(contender: Contender, number: int) -> float:
        await asyncio.gather(*(ask_once(contender, f"{number}-{place}") for place in range(count)))
        return 0.0

    async with bench.open("three_rounds", sqlite=bench.sqlite()) as contenders:
        await _warm_up(contenders, ask_once)
        taken = await _samples(contenders, min(bench.repeat, 3), at_once)
    rows: Rows = {}
    for name, samples in taken.items():
        wall, cpu = (statistics.median(getattr(sample, field) for sample in samples) for field in ("wall", "cpu"))
        rows[name] = {"turns_per_second": round(1000 * count / wall, 1), "cpu_ms": round(cpu / count, 2)}
    return with_ratio(rows, "turns_per_second", AGENT)


SCENARIOS: dict[str, Callable[[Bench], Coroutine[Any, Any, Rows]]] = {
    scenario.__name__: scenario
    for scenario in (new_thread, streamed, burst, thread20, sqlite50, sqlite200, eager, repeated, runaway, hundred)
}


async def _fresh_threads(bench: Bench, contenders: list[Contender], run: Turn, turns: int) -> Rows:
    """Every turn in a new thread."""
    await _warm_up(contenders, run)
    return _compared(await _samples(contenders, bench.repeat, lambda c, _: run(c, uuid.uuid4().hex), turns))


async def _growth(bench: Bench, turn: int) -> Rows:
    """The last turns of one long thread, and between them first turns of new threads."""
    rows: Rows = {}
    length = min(turn, bench.at_most)
    async with bench.open("three_rounds", sqlite=bench.sqlite()) as contenders:
        await _warm_up(contenders, ask_once)
        for contender in contenders:
            window = min(COPIED_WINDOW if contender.may_copy else WINDOW, length)
            await contender.grow("long", length - window)
            first, last = [], []
            for _ in range(window):
                first += (await _samples([contender], 1, lambda c, _: ask_once(c, uuid.uuid4().hex)))[contender.name]
                last += (await _samples([contender], 1, lambda c, _: ask_once(c, "long")))[contender.name]
            rows[contender.name] = _growth_metrics(first, last)
    return with_ratio(rows, "cpu_ms", AGENT)


def _growth_metrics(first: list[Sample], last: list[Sample]) -> Metrics:
    cpu_first, cpu_last = statistics.median(s.cpu for s in first), statistics.median(s.cpu for s in last)
    return {
        "cpu_ms_turn_1": round(cpu_first, 2),
        "cpu_ms": round(cpu_last, 2),
        "cpu_ms_worst": round(max(s.cpu for s in last), 2),
        "growth": round(cpu_last / cpu_first, 2),
        "wall_ms_turn_1": round(statistics.median(s.wall for s in first), 1),
        "wall_ms": round(statistics.median(s.wall for s in last), 1),
    }


async def _warm_up(contenders: list[Contender], run: Turn) -> None:
    for contender in contenders:
        await run(contender, "warm-up")


async def _samples(
    contenders: list[Contender], repeat: int, run: Callable[[Contender, int], Awaitable[float]], turns: int = 1
) -> dict[str, list[Sample]]:
    """So many samples of each contender, taken in turn, so that a noisy moment hits all of them."""
    taken: dict[str, list[Sample]] = {contender.name: [] for contender in contenders}
    for number, contender in itertools.product(range(repeat), contenders):
        taken[contender.name].append(await time_turns(partial(run, contender, number), turns))
    return taken


def _compared(taken: dict[str, list[Sample]]) -> Rows:
    return with_ratio({name: summarized(samples, MODEL_CALLS) for name, samples in taken.items()}, "cpu_ms", AGENT)


async def _result_of(contender: Contender, thread: str, **config: Any) -> str:
    """`answer`, the exception's name, or that nothing came."""
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            text = await contender.ask(QUESTION, thread, **config)
    except TimeoutError:
        return f"cut off after {PATIENCE_SECONDS:g} s"
    except Exception as error:
        return type(error).__name__
    return "answer" if text.strip() else "empty answer"
