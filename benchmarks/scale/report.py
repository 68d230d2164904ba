"""A run's steps in order, and what they measured against the targets.

    python -m benchmarks.scale [--chunks N] [--data DIR] [--json]

Vectors are synthetic; the text is real and comes from DIR (../shared/data). Exit code 1: a target was missed.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.scale.corpus import load_questions, write_files
from benchmarks.scale.phases import (
    Metrics,
    Place,
    ingest_at_once,
    ingest_for_owners,
    measure_search,
    search_while_writing,
)

AT_ONCE_CHUNKS = 20_000
"""Enough to tell how fast an ingest is that goes on for a while."""
DEFAULT_DATA = Path(__file__).parents[3] / "shared" / "data"


class Target(NamedTuple):
    """A number that a run is held to."""

    name: str
    value: float
    limit: float
    unit: str
    is_floor: bool = False

    @property
    def met(self) -> bool:
        return self.value >= self.limit if self.is_floor else self.value <= self.limit


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print a table or one JSON object."""
    parser = argparse.ArgumentParser(prog="benchmarks.scale", description="The knowledge base as it grows")
    parser.add_argument("--chunks", type=int, default=10_000, help="sections written; nearly each becomes a chunk")
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA, help="folder with the collections")
    parser.add_argument("--queries", type=int, default=200, help="searches of each kind")
    parser.add_argument("--seconds", type=float, default=10, help="how long threads search while one writes")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    options = parser.parse_args(arguments)
    if not (options.data / "multihop").is_dir():
        print(f"skipped: no collections in {options.data}", file=sys.stderr)
        return 0
    with tempfile.TemporaryDirectory(prefix="scale-benchmark-") as folder:
        place = Place(options.data, Path(folder).resolve())
        report = measure(place, options.chunks, options.queries, options.seconds)
    targets = compare(report)
    if options.json:
        told = [{**target._asdict(), "met": target.met} for target in targets]
        print(json.dumps({**report, "targets": told}))
    else:
        print(render_table(report, targets))
    return 0 if all(target.met for target in targets) else 1


def measure(place: Place, chunks: int, queries: int, seconds: float) -> Metrics:
    """All steps, in the order in which a knowledge base lives."""
    started = time.perf_counter()
    folders = write_files(place.data, place.files, chunks)
    questions = load_questions(place.data)[:queries]
    _say("files written", started)
    part = list(folders.values())[: max(1, len(folders) * AT_ONCE_CHUNKS // max(chunks, AT_ONCE_CHUNKS))]
    report: Metrics = {}
    steps: dict[str, Callable[[], Metrics]] = {
        "at_once": lambda: _apart(ingest_at_once, place, part),
        "ingest": lambda: _apart(ingest_for_owners, place, folders, embedded=False),
        "embed": lambda: _apart(ingest_for_owners, place, folders, embedded=True),
        "searching": lambda: _apart(measure_search, place, questions),
        "concurrent": lambda: _apart(search_while_writing, place, questions, seconds),
    }
    for name, step in steps.items():
        report[name] = step()
        _say(f"{name}: {report[name]}", started)
    disk = sum(path.stat().st_blocks * 512 for path in place.knowledge.rglob("*") if path.is_file())
    return {"chunks": report["ingest"]["chunks"], **report, "disk_mb": round(disk / 1e6)}


def compare(report: Metrics) -> list[Target]:
    """What a run of 100,000 chunks is held to; smaller runs must meet it too."""
    search, at_once, concurrent = report["searching"]["search"], report["at_once"], report["concurrent"]
    filtered = search["filtered"]["median_ms"]
    steps = (at_once, report["ingest"], report["embed"], report["searching"])
    peak = max(step["peak_mb"] for step in steps)
    again = round(at_once["seconds"] / at_once["again_seconds"], 1)
    return [
        Target("filtered hybrid search, median", filtered, 15, "ms"),
        Target("filtered to unfiltered", round(filtered / search["unfiltered"]["median_ms"], 2), 2, ""),
        Target("resident memory, peak of any step", peak, 1200, "MB"),
        Target("reopen and first search", report["searching"]["open_seconds"], 3, "s"),
        Target("one ingest, BM25 only", round(at_once["chunks"] / at_once["seconds"]), 1000, "chunks/s", is_floor=True),
        Target("the same ingest again, times faster", again, 20, "", is_floor=True),
        Target("errors while one writes", concurrent["errors"], 0, ""),
        Target("hits of a wrong scope", concurrent["wrong_scope"], 0, ""),
    ]


def render_table(report: Metrics, targets: Sequence[Target]) -> str:
    """Targets first, then what else was measured."""
    lines = [
        f"{report['chunks']} chunks, {report['ingest']['documents']} documents, {report['disk_mb']} MB on disk",
        "",
    ]
    for target in targets:
        limit = f"{'>=' if target.is_floor else '<='} {target.limit:g} {target.unit}".strip()
        lines.append(f"{target.name:36} {target.value:>10g}  {limit:18} {'met' if target.met else 'MISSED'}")
    lines += ["", f"{'hybrid search, one after the other':36} {'median ms':>10} {'p95 ms':>8} {'CPU ms':>8}"]
    for name, row in report["searching"]["search"].items():
        lines.append(f"  {name:34} {row['median_ms']:>10g} {row['p95_ms']:>8g} {row['cpu_ms']:>8g}")
    ingest, embed, told = report["ingest"], report["embed"], report["concurrent"]
    lines.append("")
    lines.append(f"{ingest['ingests']} owners, an ingest each: {round(ingest['chunks'] / ingest['seconds'])} chunks/s")
    lines.append(f"synthetic vectors made and stored: {round(ingest['chunks'] / embed['seconds'])} chunks/s")
    lines.append(
        f"eight threads: {told['searches']} searches, median {told['median_ms']:g} ms, while {told['written_chunks']} "
        "chunks were written"
    )
    return "\n".join(lines)


def _apart(step: Callable[..., Metrics], *arguments: Any, **options: Any) -> Metrics:
    """The step in a process of its own."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(step, *arguments, **options).result()


def _say(text: str, started: float) -> None:
    print(f"{time.perf_counter() - started:6.1f} s  {text}", file=sys.stderr)
