"""The command as a user runs it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SEARCH_KEYS = ["id", "document_id", "title", "source", "page", "heading", "score", "text", "start", "end"]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "leave.md").write_text("# Leave policy\n\n## Sick leave\n\nSick leave lasts ten days a year.\n")
    (docs / "family.md").write_text("# Family policy\n\nParental leave lasts twenty weeks.\n")
    (docs / "travel.md").write_text("# Travel policy\n\nHotels cost at most 120 euros a night.\n")
    return tmp_path


def run(home: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("GRAPHRAG_", "OPENAI_"))}
    command = [sys.executable, "-c", "from graphrag_agent.cli import main; main()", *arguments]
    settings = {"GRAPHRAG_EMBEDDER": "none", "COLUMNS": "200", **environment}
    return subprocess.run(command, cwd=home, env={**clean, **settings}, capture_output=True, text=True)


def run_json(home: Path, *arguments: str) -> Any:
    done = run(home, *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_ingest_reports_what_it_did_and_does_nothing_twice(home: Path):
    (home / "docs" / "broken.pdf").write_bytes(b"%PDF-1.4 nonsense")
    first = run_json(home, "ingest", "docs")
    assert {name: first[name] for name in ("documents", "chunks", "unchanged")} == {
        "documents": 3,
        "chunks": 3,
        "unchanged": 0,
    }
    assert [Path(item["path"]).name for item in first["failed"]] == ["broken.pdf"]
    second = run_json(home, "ingest", "docs")
    assert (second["documents"], second["chunks"], second["unchanged"]) == (0, 0, 3)


def test_a_failed_file_is_named_once(home: Path):
    (home / "docs" / "broken.pdf").write_bytes(b"%PDF-1.4 nonsense")
    told = run(home, "ingest", "docs").stderr
    assert told.count("broken.pdf") == 1
    assert "failed: docs/broken.pdf: damaged" in told


def test_search_prints_hits_with_exact_places(home: Path):
    run_json(home, "ingest", "docs")
    found = run_json(home, "search", "sick leave", "--top-k", "1")
    assert list(found) == ["query", "hits", "note"]
    (hit,) = found["hits"]
    assert list(hit) == SEARCH_KEYS
    assert (hit["source"], hit["title"], hit["page"]) == ("docs/leave.md", "Leave policy", None)
    assert (home / hit["source"]).read_text()[hit["start"] : hit["end"]] == hit["text"]
    assert "ten days" in hit["text"]


def test_ask_prints_a_cited_answer_and_its_searches(home: Path):
    run_json(home, "ingest", "docs")
    told = run_json(home, "ask", "How many days does sick leave last?")
    assert list(told) == ["answer", "citations", "outcome", "trace"]
    (citation,) = told["citations"]
    assert f"Sick leave lasts ten days a year. [{citation['id']}]" in told["answer"]
    assert (home / citation["source"]).read_text()[citation["start"] : citation["end"]] == citation["text"]
    assert told["outcome"]["ending"] == "answered"
    assert told["trace"][0]["tool"] == "knowledge_search"
    shown = run(home, "ask", "How many days does sick leave last?", "--trace").stdout
    assert f"[{citation['id']}] Leave policy > Sick leave (docs/leave.md)" in shown
    assert "knowledge_search: How many days does sick leave last" in shown


def test_a_thread_goes_on_in_the_next_process(home: Path):
    run_json(home, "ingest", "docs")
    run_json(home, "ask", "How many days does sick leave last?", "--thread", "t1")
    told = run_json(home, "ask", "And parental leave?", "--thread", "t1")
    assert "Parental leave lasts twenty weeks." in told["answer"]
    assert "days" in told["trace"][0]["arguments"]["query"].lower(), "the question before is known"


def test_tenants_and_groups_are_apart(home: Path):
    run_json(home, "ingest", "docs/leave.md", "--tenant", "acme", "--group", "hr")
    for options, hits in (((), 0), (("--tenant", "acme"), 0), (("--tenant", "acme", "--group", "hr"), 1)):
        assert len(run_json(home, "search", "sick leave", *options)["hits"]) == hits


@pytest.mark.parametrize(
    ("arguments", "environment", "code", "told"),
    [
        (("ingest", "nope"), {}, 1, "error: nope"),
        (("search", "x", "--kb", "none"), {}, 1, "there is no knowledge base in 'none': make one with"),
        (("ask", "x", "--model", "gpt"), {}, 1, "unknown model 'gpt'; possible: 'offline'"),
        (("ask", "x", "--model", "openai:gpt-5"), {}, 1, "needs OPENAI_API_KEY"),
        (("ask", "  "), {}, 1, "question='  ' is empty"),
        (("ask", "x"), {"GRAPHRAG_MAX_ROUNDS": "0"}, 1, "GRAPHRAG_MAX_ROUNDS='0'"),
        (("ask", "x"), {"GRAPHRAG_MODLE": "x"}, 1, "GRAPHRAG_MODLE='x' is no setting; did you mean GRAPHRAG_MODEL?"),
        (("search", "x", "--top-k", "0"), {}, 2, "--top-k"),
        (("ingest",), {}, 2, "PATH"),
    ],
)
def test_errors_are_one_line_with_the_value_and_the_remedy(
    home: Path, arguments: tuple[str, ...], environment: dict[str, str], code: int, told: str
):
    if "none" not in arguments and arguments[:1] != ("ingest",):
        run(home, "ingest", "docs")
    failed = run(home, *arguments, **environment)
    assert failed.returncode == code
    assert told in failed.stderr
    assert "Traceback" not in failed.stderr
    assert code == 2 or len(failed.stderr.strip().splitlines()) == 1, failed.stderr


def test_a_dotenv_file_fills_in_settings(home: Path):
    (home / ".env").write_text("GRAPHRAG_KB=elsewhere\n")
    run_json(home, "ingest", "docs")
    assert (home / "elsewhere").is_dir()


def test_debug_shows_the_traceback(home: Path):
    assert "Traceback" in run(home, "search", "x", "--kb", "none", "--debug").stderr


def test_an_ingest_that_brings_nothing_fails(home: Path):
    (home / "empty").mkdir()
    failed = run(home, "ingest", "empty")
    assert failed.returncode == 1
    assert "no supported files in 'empty'" in failed.stderr
