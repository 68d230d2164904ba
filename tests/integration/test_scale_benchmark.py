"""The scale benchmark runs, on tiny counts, and sees a leak or an error when there is one."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("qdrant_edge", reason="the benchmark needs the embedded store")

from benchmarks.scale import report
from benchmarks.scale.corpus import Owner, may_read, write_files
from benchmarks.scale.phases import Everything, _Searches
from graphrag_agent.documents import Chunk, Hit
from graphrag_agent.retrieval.scope import Scope
from graphrag_agent.retrieval.search.result import SearchResult


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data" / "multihop" / "hotpotqa_train100"
    folder.mkdir(parents=True)
    words = ["river", "bridge", "valve", "engine", "market", "winter", "treaty", "orchard", "signal", "harbour"]
    texts = [f"The {one} is near the {other}. Nobody counts the {other}s." for one in words for other in words]
    rows = [{"doc_id": str(at), "title": f"Place {at}", "text": text} for at, text in enumerate(texts)]
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    queries = [{"id": "q", "question": f"where is the {word}?", "gold_doc_ids": []} for word in words]
    (folder / "questions.jsonl").write_text("\n".join(map(json.dumps, queries)), encoding="utf-8")
    return tmp_path / "data"


def test_a_small_run_tells_every_number(data: Path, capsys: pytest.CaptureFixture[str]):
    options = ["--data", str(data), "--chunks", "60", "--queries", "10", "--seconds", "0.5", "--json"]
    code = report.main(options)
    told = json.loads(capsys.readouterr().out)
    assert told["chunks"] == 60
    assert (told["at_once"]["chunks"], told["ingest"]["ingests"], told["ingest"]["documents"]) == (60, 5, 5)
    assert (told["embed"]["documents"], told["embed"]["chunks"]) == (0, 0)
    search = told["searching"]["search"]
    assert list(search) == ["filtered", "tenant", "unfiltered"]
    assert all(row["searches"] == 5 and 0 < row["median_ms"] <= row["p95_ms"] for row in search.values())
    concurrent = told["concurrent"]
    assert (concurrent["errors"], concurrent["wrong_scope"]) == (0, 0)
    assert min(concurrent["searches"], concurrent["hits"], concurrent["written_chunks"]) > 0
    assert len(told["targets"]) == 8
    assert code == (0 if all(target["met"] for target in told["targets"]) else 1)


def test_a_missed_target_is_a_failed_run(
    monkeypatch: pytest.MonkeyPatch, data: Path, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(report, "measure", lambda *arguments: numbers(wrong_scope=1))
    assert report.main(["--data", str(data)]) == 1
    lines = [line for line in capsys.readouterr().out.splitlines() if line.endswith("MISSED")]
    assert [line.split("  ")[0] for line in lines] == ["hits of a wrong scope"]
    monkeypatch.setattr(report, "measure", lambda *arguments: numbers())
    assert report.main(["--data", str(data)]) == 0


def test_without_the_collections_the_run_is_skipped_and_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert report.main(["--data", str(tmp_path)]) == 0
    assert "skipped: no collections in" in capsys.readouterr().err


def test_files_are_the_same_at_every_run_and_lie_below_their_owners(data: Path, tmp_path: Path):
    first, second = (write_files(data, tmp_path / name, 500) for name in ("one", "two"))
    assert list(first) == list(second)
    texts = [path.read_text() for folder in first.values() for path in sorted(folder.glob("*.md"))]
    assert texts == [path.read_text() for folder in second.values() for path in sorted(folder.glob("*.md"))]
    assert sum(text.count("\n## ") for text in texts) == 500
    assert first[Owner("t03", "g0")] == tmp_path / "one" / "t03" / "g0"
    sections = [section for text in texts for section in text.split("\n## ")[1:]]
    assert len(set(sections)) == 500


@pytest.mark.parametrize(
    ("owner", "seen"),
    [(Owner("t1", "g1"), True), (Owner("t1", "all"), True), (Owner("t1", "g2"), False), (Owner("t2", "g1"), False)],
)
def test_who_may_read_is_worked_out_from_the_path(owner: Owner, seen: bool):
    assert may_read(Scope("t1", frozenset({"g1"})), owner) is seen


def test_the_widest_scope_has_no_conditions():
    assert (Everything("t00").conditions(), Everything("t00").is_empty) == ({}, False)


def test_searching_threads_count_errors_and_hits_that_nobody_may_see():
    class Leaky:
        calls = 0

        def search(self, query: str, *, scope: Scope, top_k: int) -> SearchResult:
            self.calls += 1
            if self.calls == 3:
                searches.stop.set()
                raise OSError("broken")
            group = next(iter(scope.groups))
            hits = [hit(scope.tenant, group, group), hit("another", group, group), hit(scope.tenant, "all", "secret")]
            return SearchResult(query, tuple(hits))

    searches = _Searches()
    searches.run(Leaky(), ["where?"], random.Random(0))  # type: ignore[arg-type]
    assert (searches.count, searches.hits, searches.wrong) == (2, 6, 4)
    assert searches.errors == ["OSError: broken"]


def hit(tenant: str, shelf: str, group: str) -> Hit:
    """Of a file on that shelf, which the store says belongs to the group."""
    source = f"files/{tenant}/{shelf}/00001.md"
    return Hit("a2bcd", Chunk("c", "d", tenant, "default", (group,), source, "md", "", "", None, 0, "text", 0, 4), 1.0)


def numbers(*, wrong_scope: int = 0) -> dict[str, Any]:
    """A report in which every target is met, but for wrong hits."""
    row = {"median_ms": 2.0, "p95_ms": 3.0, "cpu_ms": 2.0, "searches": 5}
    ingest = {"seconds": 0.1, "chunks": 500, "documents": 42, "peak_mb": 100, "ingests": 5}
    concurrent = {"errors": 0, "wrong_scope": wrong_scope, "searches": 9, "written_chunks": 9, "median_ms": 3.0}
    return {
        "chunks": 500,
        "disk_mb": 3,
        "ingest": ingest,
        "at_once": {**ingest, "again_seconds": 0.001},
        "embed": ingest,
        "searching": {
            "open_seconds": 0.1,
            "peak_mb": 90,
            "search": dict.fromkeys(["filtered", "tenant", "unfiltered"], row),
        },
        "concurrent": concurrent,
    }
