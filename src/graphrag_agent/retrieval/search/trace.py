"""What a search did, as JSON-like values: in full for `SearchResult.trace`, in a kilobyte for a tool message."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from graphrag_agent.documents import Chunk
from graphrag_agent.retrieval.search.evidence import Distinct
from graphrag_agent.retrieval.search.fusion import Ranking
from graphrag_agent.retrieval.search.legs import Found
from graphrag_agent.retrieval.search.options import SearchOptions
from graphrag_agent.retrieval.search.rerank import Reranked
from graphrag_agent.retrieval.search.result import SearchResult

COMPACT_BYTES = 1000
"""Of JSON; a thread with durability keeps it until its turn ends."""
_COMPACT_QUERY = 60
_COMPACT_QUERIES = 3


class Steps(NamedTuple):
    """What came out of each step of a search."""

    words: str
    options: SearchOptions
    found: Found
    reranked: Reranked
    ranking: Ranking
    """As the hits were taken from it."""
    distinct: Distinct
    identifier: tuple[str | None, int]
    """The identifier that the query is, and how many chunks hold it."""


def describe(steps: Steps, chunks: Mapping[str, Chunk]) -> dict[str, Any]:
    """All that was done and left out. `dropped` names each candidate that is no hit, with the reason."""
    expansion, (identifier, holders) = steps.found.expansion, steps.identifier
    strategy: dict[str, Any] = {"name": steps.options.strategy.name, "writer": expansion.writer}
    if expansion.failed:
        strategy["failed"] = expansion.failed
    if expansion.milliseconds:
        strategy["milliseconds"] = expansion.milliseconds
    if identifier and strategy["name"] != "direct":
        strategy["skipped"] = "the query is one identifier"
    return {
        "strategy": strategy,
        "queries": [steps.words, *expansion.queries],
        "legs": {name: found.trace for name, found in steps.found.lists.items()},
        "fusion": steps.options.fusion,
        **({"exact": {"identifier": identifier, "holders": holders}} if identifier else {}),
        "rerank": dict(steps.reranked.trace) if steps.options.rerank else {"skipped": "switched off"},
        "diversity": steps.options.diversity,
        "dropped": _dropped(steps, chunks),
    }


def compact_trace(result: SearchResult) -> dict[str, Any]:
    """The trace without texts and sources, at most about a kilobyte; empty where the result has none."""
    trace = result.trace
    if "legs" not in trace:
        return {}
    hits = [[hit.id, round(hit.score, 3), {leg: at.rank for leg, at in hit.legs.items()}] for hit in result.hits]
    dropped = Counter(str(item["why"]) for item in trace.get("dropped", ()))
    compact = {
        "strategy": trace["strategy"]["name"],
        "fusion": trace["fusion"],
        "rerank": trace["rerank"].get("name") or trace["rerank"].get("skipped", ""),
        "milliseconds": trace["milliseconds"],
        "legs": {name: _compact_leg(leg) for name, leg in list(trace["legs"].items())[:10]},
        "dropped": dict(dropped),
    }
    queries = [query[:_COMPACT_QUERY] for query in trace["queries"][1:]]
    if queries:
        compact["queries"] = queries[:_COMPACT_QUERIES]
    while hits and _size({**compact, "hits": hits}) > COMPACT_BYTES:
        hits.pop()
    return {**compact, "hits": hits}


def _dropped(steps: Steps, chunks: Mapping[str, Chunk]) -> list[dict[str, Any]]:
    kept = {name for name, _ in steps.distinct.ranking}
    dropped: list[dict[str, Any]] = []
    for rank, (name, score) in enumerate(steps.ranking, start=1):
        if name in kept:
            continue
        other = steps.distinct.duplicates.get(name)
        why = {"why": "duplicate", "duplicate_of": other} if other else {"why": "below top_k"}
        dropped.append({"chunk": name, "source": chunks[name].source, "rank": rank, "score": round(score, 4), **why})
    return dropped


def _compact_leg(leg: Mapping[str, Any]) -> dict[str, Any]:
    """Without the words of a failure, which may name hosts."""
    if "failed" in leg:
        return {"failed": str(leg["failed"]).partition(":")[0][:_COMPACT_QUERY]}
    return {name: value for name, value in leg.items() if isinstance(value, int | float) or name == "skipped"}


def _size(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace"))
