"""The command: a table of every contender, store and durability, and whether the targets are met."""

from __future__ import annotations

import argparse
import json
import operator
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.growth.turns import AGENT, OURS, PAYLOAD

MEGABYTE = 1_000_000
FSYNC_TURNS = (4, 24)
"""Turns of two runs under strace; their difference is what turns cost."""
EDGE = 7
"""Turns at either end of the thread whose median counts as its first and last turn."""

Row = dict[str, Any]


class Case(NamedTuple):
    """One row of the table."""

    store: str
    contender: str
    durability: str


CASES = (
    *(Case("sqlite", OURS, durability) for durability in ("exit", "async", "sync")),
    Case("sqlite", AGENT, "async"),
    *(Case("postgres", OURS, durability) for durability in ("exit", "async", "sync")),
    Case("postgres", AGENT, "async"),
)


class Target(NamedTuple):
    """What every row of ours must reach in one column, on one store or on both."""

    name: str
    column: str
    compare: Callable[[Any, Any], bool]
    limit: Any
    store: str = ""


TARGETS = (
    Target("megabytes a turn", "mb_a_turn", operator.le, 0.02, "sqlite"),
    Target("megabytes a turn in the last half", "mb_last_half", operator.le, 0.02, "sqlite"),
    Target("fsyncs a turn", "fsyncs_a_turn", operator.le, 8, "sqlite"),
    Target("CPU of the last turn, to the first", "cpu_growth", operator.le, 1.3),
    Target("tool results in the database", "payload", operator.eq, False),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print. The status says nothing about targets: a noisy machine is no failure."""
    parser = argparse.ArgumentParser(prog="benchmarks.growth", description=__doc__)
    parser.add_argument("--turns", type=int, default=200, help="turns of the thread")
    parser.add_argument("--store", choices=["sqlite", "postgres"], help="only this one")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    options = parser.parse_args(arguments)
    report = measure([case for case in CASES if options.store in (None, case.store)], options.turns)
    print(json.dumps(report) if options.json else "\n".join(render(report)))
    return 0


def measure(cases: Sequence[Case], turns: int) -> dict[str, Any]:
    """The rows, and the targets that they decide."""
    rows: list[Row] = []
    for case in cases:
        with _place(case.store) as place:
            if place is None:
                print(f"{case.store}: no server here, so it is left out", file=sys.stderr)
                continue
            row = {**case._asdict(), **_grown(case, place, turns)}
        if case.store == "sqlite":
            row["fsyncs_a_turn"] = _fsyncs(case)
        rows.append(row)
        print(f"{' '.join(case)}: {row['seconds']} s", file=sys.stderr)
    return {"turns": turns, "rows": rows, "targets": dict(judge(rows))}


def judge(rows: Sequence[Row]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Name of a target -> the worst of our rows, its limit, and whether it is met."""
    for target in TARGETS:
        ours = [row for row in rows if row["contender"] == OURS and target.store in ("", row["store"])]
        values = [row[target.column] for row in ours if row.get(target.column) is not None]
        if values:
            met = all(target.compare(value, target.limit) for value in values)
            yield target.name, {"value": max(values), "limit": target.limit, "met": met}


def render(report: dict[str, Any]) -> Iterator[str]:
    """The report as text."""
    yield f"{report['turns']} turns on one thread, each with three searches of 3 KB"
    columns = list(dict.fromkeys(column for row in report["rows"] for column in row))
    cells = [[_shown(row.get(column)) for column in columns] for row in report["rows"]]
    widths = [max(len(column), *(len(row[at]) for row in cells)) for at, column in enumerate(columns)]
    for line in (columns, *cells):
        yield "  ".join(f"{cell:>{width}}" for cell, width in zip(line, widths, strict=True))
    yield "\ntargets (the worst of ours)"
    for name, target in report["targets"].items():
        verdict = "met" if target["met"] else "MISSED"
        yield f"  {name:<44}{_shown(target['value']):>10}  limit {target['limit']!s:>6}  {verdict}"


def _grown(case: Case, place: str, turns: int) -> Row:
    told = _run(case, place, turns)
    cpu, sizes = told["cpu_ms"], {int(turn): size for turn, size in told["bytes"].items()}
    first, middle, last = min(sizes), sorted(sizes)[len(sizes) // 2], max(sizes)
    edge = min(EDGE, max(1, turns // 2))
    began, ended = statistics.median(cpu[:edge]), statistics.median(cpu[-edge:])
    return {
        "mb_a_turn": round(_slope(sizes, first, last) / MEGABYTE, 4),
        "mb_last_half": round(_slope(sizes, middle, last) / MEGABYTE, 4),
        "cpu_ms_first": round(began, 1),
        "cpu_ms_last": round(ended, 1),
        "cpu_growth": round(ended / began, 2),
        "payload": _has_payload(place),
        "seconds": round(sum(cpu) / 1000, 1),
    }


def _slope(sizes: dict[int, int], start: int, end: int) -> float:
    return (sizes[end] - sizes[start]) / max(1, end - start)


def _fsyncs(case: Case) -> float | None:
    """Calls of fsync and fdatasync a turn, counted by strace; None where it isn't installed."""
    if not shutil.which("strace"):
        return None
    counts = []
    for turns in FSYNC_TURNS:
        with tempfile.TemporaryDirectory(prefix="growth-") as folder:
            log = Path(folder) / "calls"
            # --seccomp-bpf: the process stops at these calls only, not at every one
            tracer = ["strace", "-f", "--seccomp-bpf", "-c", "-e", "trace=fsync,fdatasync", "-o", str(log)]
            _run(case, str(Path(folder) / "threads.sqlite"), turns, tracer)
            lines = (line.split() for line in log.read_text().splitlines() if line.strip())
            counts.append(sum(int(line[3]) for line in lines if line[-1] in ("fsync", "fdatasync")))
    return round((counts[1] - counts[0]) / (FSYNC_TURNS[1] - FSYNC_TURNS[0]), 1)


def _run(case: Case, place: str, turns: int, tracer: Sequence[str] = ()) -> dict[str, Any]:
    program = [sys.executable, "-W", "ignore", "-m", "benchmarks.growth.turns"]
    done = subprocess.run(
        [*tracer, *program, case.contender, place, case.durability, str(turns)], capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(case)} failed:\n{done.stderr}")
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def _has_payload(place: str) -> bool:
    """Whether a tool result can be found in what the database holds."""
    if not place.startswith("postgresql:"):
        files = [Path(place), *Path(place).parent.glob(f"{Path(place).name}-*")]
        return any(PAYLOAD.encode() in file.read_bytes() for file in files)
    import psycopg

    with psycopg.connect(place) as connection:
        found = "SELECT count(*) FROM {} WHERE position(%s::bytea IN blob) > 0"
        counts = [
            connection.execute(found.format(table), (PAYLOAD.encode(),)).fetchone()
            for table in ("checkpoint_blobs", "checkpoint_writes")
        ]
        return any(row and row[0] for row in counts)


@contextmanager
def _place(store: str) -> Iterator[str | None]:
    """An empty database; None where there can be none."""
    if store == "sqlite":
        with tempfile.TemporaryDirectory(prefix="growth-") as folder:
            yield str(Path(folder) / "threads.sqlite")
        return
    from tests.postgres_server import PostgresServer, binary

    if binary("initdb") is None:
        yield None
        return
    server = PostgresServer()
    try:
        yield server.database()
    finally:
        server.remove()


def _shown(value: Any) -> str:
    return "" if value is None else str(value)
