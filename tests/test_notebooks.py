"""Every notebook runs from top to bottom, offline, and is kept without outputs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
MAX_CELLS = 15
SECONDS = 60

SHOWN = {
    "01_first_answer.ipynb": (
        "IngestReport(documents=11, chunks=80, unchanged=0, failed=(), ",
        "press the side button for ten seconds. [1]",
        "examples/weir-g4-product-notes.md, characters 939 to 1668, the cited text: True",
        "knowledge_search {'query': 'What does E-1042 mean'}: 5 found",
        "'ending': 'answered'",
        "<turn_ended>",
        "每周最多可以远程办公三天",
        "dedupe_guard -.-> tool_dispatch;",
    ),
}
"""Notebook -> what its outputs show, in this order."""


def _read(path: Path) -> Any:
    return nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]


def _texts(notebook: Any) -> Iterator[str]:
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            yield output.get("text") or output["data"].get("text/markdown") or output["data"]["text/plain"]


@pytest.fixture
def own_kernel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The kernel of this interpreter, whatever else the machine has; its files go away with the test."""
    monkeypatch.setenv("JUPYTER_PREFER_ENV_PATH", "1")
    for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))


def test_each_notebook_is_expected_to_show_something() -> None:
    assert [path.name for path in NOTEBOOKS] == sorted(SHOWN)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_outputs_are_stored_and_the_notebook_is_short(path: Path) -> None:
    cells = _read(path).cells
    assert len(cells) <= MAX_CELLS
    code = [cell for cell in cells if cell.cell_type == "code"]
    assert [(cell.outputs, cell.execution_count) for cell in code] == [([], None)] * len(code)


@pytest.mark.usefixtures("own_kernel")
@pytest.mark.parametrize("started_in", ["notebooks", "."])
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_from_top_to_bottom(path: Path, started_in: str) -> None:
    notebook = _read(path)
    resources = {"metadata": {"path": str(ROOT / started_in)}}
    NotebookClient(notebook, timeout=SECONDS, kernel_name="python3", resources=resources).execute()
    shown = "\n".join(_texts(notebook))
    found = [shown.find(expected) for expected in SHOWN[path.name]]
    assert -1 not in found, shown
    assert found == sorted(found)
