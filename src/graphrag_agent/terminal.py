"""What the commands share: options, one-line errors, the opened knowledge base, progress, JSON."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from graphrag_agent.errors import GraphragError, KnowledgeBaseError
from graphrag_agent.identity import Principal
from graphrag_agent.knowledge_opening import home_of, open_knowledge_base
from graphrag_agent.retrieval.ingestion.embedding import VECTORS
from graphrag_agent.retrieval.knowledge_base import KnowledgeBase
from graphrag_agent.retrieval.stores.opening import has_folder
from graphrag_agent.retrieval.stores.own_folder import holds_store
from graphrag_agent.settings import Settings, load_settings

out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False)

KbOption = Annotated[
    str | None,
    typer.Option("--kb", metavar="DIR", help="Folder of the knowledge base, or URL of a Qdrant server [.graphrag]"),
]
TenantOption = Annotated[str, typer.Option("--tenant", metavar="T", help="Whose documents")]
GroupsOption = Annotated[list[str] | None, typer.Option("--group", metavar="G", help="A group; may be repeated")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON")]
DebugOption = Annotated[bool, typer.Option("--debug", help="Show tracebacks")]


_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Escape sequences, line breaks, changes of direction, halves of characters."""


@contextmanager
def one_line_errors(*, debug: bool) -> Iterator[None]:
    """Errors as one line on stderr and exit code 1; with `--debug` the traceback."""
    try:
        yield
    except Exception as error:
        if debug:
            raise
        told = str(error) if isinstance(error, GraphragError) else f"{type(error).__name__}: {error} (see --debug)"
        err.print(f"error: {shown(told)}", soft_wrap=True)
        raise typer.Exit(1) from None


def chosen_settings(kb: str | None, **given: str | None) -> Settings:
    """From the environment, where no option says otherwise."""
    named = {"kb": kb, **given}
    return load_settings(**{name: value for name, value in named.items() if value is not None})


@contextmanager
def opened(settings: Settings, *, must_exist: bool = True, reembed: bool = False) -> Iterator[KnowledgeBase]:
    """The knowledge base of the settings, closed at the end. Raises KnowledgeBaseError where it must exist already."""
    if must_exist and has_folder(settings.kb) and not holds_store(home_of(settings)):
        raise KnowledgeBaseError(
            f"there is no knowledge base in {settings.kb!r}: "
            f"make one with graphrag-agent ingest PATH --kb {settings.kb}"
        )
    with open_knowledge_base(settings, reembed=reembed) as knowledge:
        yield knowledge


@contextmanager
def progress_bar() -> Iterator[Callable[[int, int, str], None]]:
    """A bar on stderr for files, then one for vectors; to be called with done, in all, and what was just done."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    rate = TextColumn("{task.fields[rate]}")
    with Progress(*columns, rate, console=err, transient=True) as bar:
        tasks: dict[bool, TaskID] = {}

        def show(done: int, total: int, name: str) -> None:
            is_vectors = name == VECTORS
            if is_vectors not in tasks:
                tasks[is_vectors] = bar.add_task("reading", total=None, rate="")
            task = bar.tasks[bar.task_ids.index(tasks[is_vectors])]
            unit = "vectors" if is_vectors else "files"
            told = f"{task.finished_speed or task.speed:.1f} {unit}/s" if task.speed else ""
            label = "making vectors (words are found already)" if is_vectors else shown(Path(name).name[:30])
            bar.update(tasks[is_vectors], completed=done, total=total, description=label, rate=told)

        yield show


def chosen_principal(tenant: str, groups: list[str] | None) -> Principal:
    """Who the options say is asking."""
    return Principal(tenant=tenant, groups=tuple(groups or ()))


def print_json(value: Any) -> None:
    """On stdout, for programs; escaped where a name isn't UTF-8 or the output can't say all that there is."""
    told = json.dumps(value, ensure_ascii=False, indent=2)
    try:
        told.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        told = json.dumps(value, indent=2)
    try:
        sys.stdout.write(told + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        out.on_broken_pipe()  # as for printed text: `| head` has read enough, which is no error to tell


def shown(text: str) -> str:
    """One line to print, without what a terminal or its markup obeys: documents are written by strangers.

    A question mark stands for what the output has no character for.
    """
    line = _CONTROLS.sub(" ", text).encode(out.encoding, "replace").decode(out.encoding)
    return escape(line)
