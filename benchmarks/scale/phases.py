"""The steps of a run, each in a fresh process, so that memory and opening are those of the step alone."""

from __future__ import annotations

import asyncio
import random
import resource
import statistics
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.scale.corpus import GROUPS, TENANTS, Owner, load_pools, may_read, owner_of, write_file
from benchmarks.scale.word_vectors import WordVectors
from graphrag_agent.documents import Hit
from graphrag_agent.retrieval.ingestion.pipeline import IngestReport
from graphrag_agent.retrieval.knowledge_base import KnowledgeBase
from graphrag_agent.retrieval.scope import Scope

Metrics = dict[str, Any]
"""JSON-like values by name."""

TOP_K = 5
WARM_UP = 5
"""Searches of each kind before the first that counts."""
SEARCHING_THREADS = 8


class Place(NamedTuple):
    """Where a run's files and its knowledge base lie."""

    data: Path
    folder: Path

    @property
    def knowledge(self) -> Path:
        return self.folder / "kb"

    @property
    def files(self) -> Path:
        return self.folder / "files"


class Everything(Scope):
    """No condition at all: wider than anything the product lets anybody ask for, to compare with."""

    def conditions(self) -> Mapping[str, frozenset[str]]:
        return {}


def ingest_at_once(place: Place, folders: Sequence[Path]) -> Metrics:
    """All folders in one ingest for one owner, BM25 only, into a knowledge base of its own; then once more."""
    with KnowledgeBase.open(place.folder / "at-once", embedder=None) as knowledge:
        started = time.perf_counter()
        first = knowledge.ingest(folders)
        seconds = time.perf_counter() - started
        again = knowledge.ingest(folders)
        again_seconds = time.perf_counter() - started - seconds
    _check([first, again])
    if again.documents or again.unchanged != first.documents:
        raise RuntimeError(f"unchanged files were written again: {again}")
    return {
        "chunks": first.chunks,
        "seconds": round(seconds, 2),
        "again_seconds": round(again_seconds, 3),
        "peak_mb": _peak_mb(),
    }


def ingest_for_owners(place: Place, folders: dict[Owner, Path], *, embedded: bool) -> Metrics:
    """One ingest for each owner: first for BM25, then the vectors."""
    embedder = WordVectors() if embedded else None
    with KnowledgeBase.open(place.knowledge, embedder=embedder) as knowledge:
        started, cpu = time.perf_counter(), time.process_time()
        reports = [
            knowledge.ingest(folder, tenant=owner.tenant, groups=owner.groups) for owner, folder in folders.items()
        ]
        seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
        pending = reports[-1].pending if embedded else 0
    _check(reports)
    if pending:
        raise RuntimeError(f"{pending} chunks got no vector: {reports[-1].embedding_problem}")
    return {
        "ingests": len(reports),
        "seconds": round(seconds, 2),
        "cpu_seconds": round(cpu, 2),
        "documents": sum(report.documents for report in reports),
        "chunks": sum(report.chunks for report in reports),
        "peak_mb": _peak_mb(),
    }


def _check(reports: Sequence[IngestReport]) -> None:
    failed = [failure for report in reports for failure in report.failed]
    if failed:
        raise RuntimeError(f"{len(failed)} files failed, the first: {failed[0]}")


def measure_search(place: Place, questions: Sequence[str]) -> Metrics:
    """Opening, then searches in three scopes in turn, one question after the other."""
    embedder = WordVectors()
    asyncio.run(embedder.embed_query(questions[0]))
    started = time.perf_counter()
    with KnowledgeBase.open(place.knowledge, embedder=embedder) as knowledge:
        first = knowledge.search(questions[0], scope=Scope(TENANTS[0], frozenset(GROUPS)), top_k=TOP_K)
        opened = time.perf_counter() - started
        if not first.hits:
            raise RuntimeError(f"the first search found nothing: {first.note}")
        rows = asyncio.run(_timed_searches(knowledge, embedder, questions))
        return {"open_seconds": round(opened, 2), **_memory(), "search": rows}


def search_while_writing(place: Place, questions: Sequence[str], seconds: float) -> Metrics:
    """Threads that search in scopes of their own while one ingests new, changed and removed files."""
    embedder = WordVectors()
    for question in questions:
        asyncio.run(embedder.embed_query(question))
    searches = _Searches()
    with KnowledgeBase.open(place.knowledge, embedder=embedder) as knowledge:
        threads = [
            threading.Thread(target=searches.run, args=(knowledge, questions, random.Random(number)))
            for number in range(SEARCHING_THREADS)
        ]
        for thread in threads:
            thread.start()
        try:
            written = _write_for(knowledge, place, seconds)
        finally:
            searches.stop.set()
            for thread in threads:
                thread.join()
    return {
        "searches": searches.count,
        "hits": searches.hits,
        "written_chunks": written,
        "errors": len(searches.errors),
        "wrong_scope": searches.wrong,
        "median_ms": _median(searches.milliseconds),
        **({"first_error": searches.errors[0]} if searches.errors else {}),
    }


class _Searches:
    """What the searching threads saw, together."""

    def __init__(self) -> None:
        self.stop = threading.Event()
        self.errors: list[str] = []
        self.milliseconds: list[float] = []
        self.hits = self.wrong = self.count = 0
        self._lock = threading.Lock()

    def run(self, knowledge: KnowledgeBase, questions: Sequence[str], chance: random.Random) -> None:
        while not self.stop.is_set():
            scope = _scope(chance)
            started = time.perf_counter()
            try:
                hits = knowledge.search(chance.choice(questions), scope=scope, top_k=TOP_K).hits
            except Exception as error:  # counted: none is allowed
                with self._lock:
                    self.errors.append(f"{type(error).__name__}: {error}")
                continue
            with self._lock:
                self.milliseconds.append((time.perf_counter() - started) * 1000)
                self.count += 1
                self.hits += len(hits)
                self.wrong += sum(not _is_right(hit, scope) for hit in hits)


def _is_right(hit: Hit, scope: Scope) -> bool:
    return may_read(scope, owner_of(hit.chunk)) and scope.allows(hit.chunk)


def _write_for(knowledge: KnowledgeBase, place: Place, seconds: float) -> int:
    """New files, the same files changed, and some deleted, until the time is up; chunks written."""
    pool, chance = load_pools(place.data)[0], random.Random(1)
    ends, written, number = time.perf_counter() + seconds, 0, 0
    while time.perf_counter() < ends:
        owner = Owner(chance.choice(TENANTS), chance.choice(GROUPS))
        folder = place.folder / "new" / owner.tenant / owner.shelf
        folder.mkdir(parents=True, exist_ok=True)
        number += 1
        write_file(folder / f"new-{number % 50:03}.md", pool, 6, chance)
        written += knowledge.ingest(folder, tenant=owner.tenant, groups=owner.groups).chunks
        if number % 5 == 0:
            scope = Scope(owner.tenant, frozenset({owner.shelf}))
            mine = [item for item in knowledge.documents(scope) if "/new-" in item.source]
            knowledge.delete(chance.choice(mine).id, scope)
    return written


async def _timed_searches(knowledge: KnowledgeBase, embedder: WordVectors, questions: Sequence[str]) -> Metrics:
    times: dict[str, list[tuple[float, float]]] = {"filtered": [], "tenant": [], "unfiltered": []}
    chance = random.Random(2)
    for number, question in enumerate(questions):
        await embedder.embed_query(question)
        filtered = _scope(chance)
        scopes = {
            "filtered": filtered,
            "tenant": Scope(filtered.tenant, frozenset(GROUPS)),
            "unfiltered": Everything(filtered.tenant),
        }
        for name, scope in scopes.items():
            started, cpu = time.perf_counter(), time.process_time()
            result = await knowledge.asearch(question, scope=scope, top_k=TOP_K)
            took = (time.perf_counter() - started) * 1000, (time.process_time() - cpu) * 1000
            if number >= WARM_UP:
                times[name].append(took)
            if name == "filtered" and not all(_is_right(hit, scope) for hit in result.hits):
                raise RuntimeError(f"a hit outside of {scope}")
    return {name: _summary(samples) for name, samples in times.items()}


def _summary(samples: Sequence[tuple[float, float]]) -> Metrics:
    wall, cpu = zip(*samples, strict=True)
    return {
        "searches": len(samples),
        "median_ms": _median(wall),
        "p95_ms": round(statistics.quantiles(wall, n=20)[-1], 2),
        "cpu_ms": _median(cpu),
    }


def _scope(chance: random.Random) -> Scope:
    """One tenant of twenty, two groups of seven."""
    return Scope(chance.choice(TENANTS), frozenset(chance.sample(GROUPS, 2)))


def _median(values: Sequence[float]) -> float:
    return round(statistics.median(values), 2) if values else 0.0


def _memory() -> Metrics:
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return {name: round(int(status[key].split()[0]) / 1024) for name, key in _MEMORY_LINES.items()}


_MEMORY_LINES = {"rss_mb": "VmRSS", "peak_mb": "VmHWM", "own_mb": "RssAnon"}
"""Resident now, at most so far, and the part of now that isn't files which the system may drop."""


def _peak_mb() -> int:
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
