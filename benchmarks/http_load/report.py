"""The command: a fake model, the app as `graphrag-agent serve` runs it, and users; prints what they saw."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from benchmarks.http_load.users import Seen, load
from graphrag_agent.retrieval.knowledge_base import KnowledgeBase

COMMAND = "from graphrag_agent.cli import main; main()"
ROOT = Path(__file__).parents[2]
STREAMS_A_USER = 4
SAMPLE_SECONDS = 2.0
FLAT = 1.1
"""Memory of the last fifth of the time, to that of the second fifth."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print. The status says nothing about targets: a noisy machine is no failure."""
    parser = argparse.ArgumentParser(prog="benchmarks.http_load", description=__doc__)
    parser.add_argument("--streams", type=int, default=100, help="streams open at the same time")
    parser.add_argument("--seconds", type=float, default=600, help="how long")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    options = parser.parse_args(arguments)
    report = measure(options.streams, options.seconds)
    print(json.dumps(report) if options.json else "\n".join(render(report)))
    return 0


def measure(streams: int, seconds: float) -> dict[str, Any]:
    """What the users saw, and what the server took meanwhile."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="http-load-")))
        with KnowledgeBase.open(folder / "kb", embedder="none") as knowledge:
            knowledge.ingest(ROOT / "examples", tenant="acme")
        tokens = [f"load-test-token-{number:04}" for number in range(-(-streams // STREAMS_A_USER))]
        users = [{"token": token, "tenant": "acme", "user": token} for token in tokens]
        (folder / "tokens.json").write_text(json.dumps(users))
        model = stack.enter_context(_program("-m", "benchmarks.http_load.model_server"))
        settings = {
            "GRAPHRAG_MODEL": "openai:fake",
            "GRAPHRAG_KB": str(folder / "kb"),
            "GRAPHRAG_EMBEDDER": "none",
            "GRAPHRAG_TOKENS": str(folder / "tokens.json"),
            "OPENAI_BASE_URL": f"http://127.0.0.1:{model.first_line}/v1",
        }
        server = stack.enter_context(_program("-c", COMMAND, "serve", "--port", "0", **settings))
        watch = stack.enter_context(_watching(server.process.pid))
        seen = asyncio.run(load(server.url, tokens, streams=streams, seconds=seconds))
    return {"streams": seen.most_streams, "seconds": seconds, **_told(seen, seconds), **watch.told()}


def render(report: dict[str, Any]) -> Iterator[str]:
    """The report as text."""
    width = max(map(len, report))
    for name, value in report.items():
        if name != "first_errors":
            yield f"{name:<{width}}  {value}"
    yield from (f"  {error}" for error in report["first_errors"])
    verdict = "met" if not report["errors"] and report["memory_growth"] <= FLAT else "MISSED"
    yield f"targets: no error, memory of the last fifth at most {FLAT}x that of the second: {verdict}"


def _told(seen: Seen, seconds: float) -> dict[str, Any]:
    return {
        "turns": seen.turns,
        "turns_a_second": round(seen.turns / seconds, 1),
        "events_a_second": round(seen.events / seconds),
        "errors": len(seen.errors),
        "first_errors": seen.errors[:5],
        "first_text_s": _percentiles(seen.first_text_seconds),
        "turn_s": _percentiles(seen.turn_seconds),
        "longest_gap_s": _percentiles(seen.longest_gap_seconds),
    }


def _percentiles(values: Sequence[float]) -> dict[str, float]:
    """Median, 95th and 99th percentile, and the largest."""
    if not values:
        return {}
    ordered = sorted(values)
    places = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}
    return {name: round(ordered[min(len(ordered) - 1, int(share * len(ordered)))], 2) for name, share in places.items()}


class _Program:
    """A Python program that tells where it listens on its first line."""

    def __init__(self, process: subprocess.Popen[str], first_line: str) -> None:
        self.process, self.first_line = process, first_line

    @property
    def url(self) -> str:
        return next(word for word in self.first_line.split() if word.startswith("http://")).removesuffix("/chat")


@contextmanager
def _program(*arguments: str, **environment: str) -> Iterator[_Program]:
    process = subprocess.Popen(
        [sys.executable, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, **environment},
    )
    with process:
        assert process.stdin and process.stdout
        first = process.stdout.readline().strip()
        if not first:
            raise RuntimeError(f"{' '.join(arguments[:3])} did not start")
        try:
            yield _Program(process, first)
        finally:
            process.terminate()


class _Watch:
    """Memory and CPU of a process, every two seconds."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._began = (time.monotonic(), self._cpu_seconds())
        self.resident: list[int] = []
        self.stopped = threading.Event()

    def run(self) -> None:
        while not self.stopped.wait(SAMPLE_SECONDS):
            status = Path(f"/proc/{self._pid}/status").read_text()
            self.resident.append(int(status.partition("VmRSS:")[2].split()[0]) * 1024)
            self._ended = (time.monotonic(), self._cpu_seconds())

    def told(self) -> dict[str, Any]:
        fifth = max(1, len(self.resident) // 5)
        second, last = self.resident[fifth : 2 * fifth] or self.resident, self.resident[-fifth:]
        means = [sum(part) / len(part) / 1_000_000 for part in (second, last)]
        wall, cpu = (after - before for before, after in zip(self._began, self._ended, strict=True))
        return {
            "server_mb": [round(self.resident[at * (len(self.resident) - 1) // 10] / 1_000_000) for at in range(11)],
            "memory_growth": round(means[1] / means[0], 3),
            "server_cores": round(cpu / wall, 2),
        }

    def _cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self._pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def _watching(pid: int) -> Iterator[_Watch]:
    watch = _Watch(pid)
    thread = threading.Thread(target=watch.run, daemon=True)
    thread.start()
    try:
        yield watch
    finally:
        watch.stopped.set()
        thread.join(10)
