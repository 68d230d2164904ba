import json
import math
from pathlib import Path

import pytest

from benchmarks.retrieval import main, rate


def test_metrics_by_hand() -> None:
    scores = rate(["x", "g1", "y", "z", "w", "g2"], frozenset({"g1", "g2"}))
    gain, ideal = 1 / math.log2(3) + 1 / math.log2(7), 1 + 1 / math.log2(3)
    assert scores == {
        "ndcg@10": pytest.approx(gain / ideal),
        "recall@5": 0.5,
        "recall@10": 1.0,
        "mrr": 0.5,
        "all_gold_recall@5": 0.0,
        "all_gold_recall@10": 1.0,
    }


def test_nothing_found_is_zero() -> None:
    assert set(rate([], frozenset({"g"})).values()) == {0.0}


def test_a_run_over_the_products_own_ingest_prints_one_object(tmp_path: Path, capsys) -> None:
    corpus = [("d1", "Pump_station", "The pump hums."), ("d2", "Gate", "The gate is shut."), ("d3", "", "没有标题")]
    rows = [json.dumps({"doc_id": name, "title": title, "text": text}) for name, title, text in corpus]
    (tmp_path / "corpus.jsonl").write_text("\n".join(rows), encoding="utf-8")
    query = {"id": "q", "question": "Who is humming at the pump?", "gold_doc_ids": ["d1"]}
    (tmp_path / "questions.jsonl").write_text(json.dumps(query), encoding="utf-8")
    assert main(["--data", str(tmp_path), "--embedder", "none", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["documents"], report["queries"], list(report["legs"])) == (3, 1, ["bm25"])
    assert report["legs"]["bm25"]["ndcg@10"] == report["legs"]["bm25"]["mrr"] == 1.0
    assert report["legs"]["bm25"]["query_ms"] > 0
    assert list(report["not_run"]) == ["dense", "hybrid", "hybrid_rrf", "hybrid_minmax", "multi_query", "hyde"]
    assert set(report["not_run"].values()) == {"not run: needs an embedder"}
