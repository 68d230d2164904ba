"""The command `graphrag-agent`: ingest, search, ask.

Exit codes: 0 done, 1 failed (one line says why), 2 wrong usage. An ingest in which some files failed is
done; their names and reasons are on stderr and in the JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from dotenv import load_dotenv
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from graphrag_agent.agent import Answer, RagAgent
from graphrag_agent.assembly import open_knowledge_base
from graphrag_agent.documents import Hit
from graphrag_agent.errors import GraphragError, KnowledgeBaseError
from graphrag_agent.identity import DEFAULT_TENANT, Principal, acting_as
from graphrag_agent.persistence.checkpointers import open_checkpointer
from graphrag_agent.retrieval.ingestion.pipeline import IngestReport
from graphrag_agent.retrieval.knowledge_base import KnowledgeBase
from graphrag_agent.retrieval.search.result import SearchResult
from graphrag_agent.retrieval.stores.opening import has_folder
from graphrag_agent.settings import Settings, load_settings

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Ask your documents; answers cite their sources.")
out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False)

SNIPPET_CHARACTERS = 240
"""About three lines of a terminal."""

KbOption = Annotated[
    str | None,
    typer.Option("--kb", metavar="DIR", help="Folder of the knowledge base, or URL of a Qdrant server [.graphrag]"),
]
TenantOption = Annotated[str, typer.Option("--tenant", metavar="T", help="Whose documents")]
GroupsOption = Annotated[list[str] | None, typer.Option("--group", metavar="G", help="A group; may be repeated")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON")]
DebugOption = Annotated[bool, typer.Option("--debug", help="Show tracebacks")]


@app.command()
def ingest(
    paths: Annotated[list[str], typer.Argument(metavar="PATH...", help="Files and folders")],
    kb: KbOption = None,
    collection: Annotated[str, typer.Option("--collection", metavar="C", help="Set of documents")] = "default",
    tenant: TenantOption = DEFAULT_TENANT,
    group: GroupsOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Put files and folders into the knowledge base; unchanged files cost nothing."""
    with _one_line_errors(debug=debug):
        with _opened(_settings(kb), must_exist=False) as knowledge, _progress_bar() as progress:
            report = knowledge.ingest(
                paths, collection=collection, tenant=tenant, groups=group or (), progress=progress
            )
        _print_report(report, as_json=as_json)
        if not report.documents and not report.unchanged:
            reason = "every file failed" if report.failed else f"no supported files in {', '.join(map(repr, paths))}"
            raise KnowledgeBaseError(f"nothing was ingested: {reason}")


@app.command()
def search(
    query: Annotated[str, typer.Argument(help="What to look for")],
    top_k: Annotated[int, typer.Option("--top-k", metavar="N", min=1, max=100, help="How many hits")] = 5,
    kb: KbOption = None,
    tenant: TenantOption = DEFAULT_TENANT,
    group: GroupsOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Show the passages that fit a query, best first."""
    with _one_line_errors(debug=debug):
        with _opened(_settings(kb), must_exist=True) as knowledge, acting_as(_principal(tenant, group)):
            result = knowledge.search(query, top_k=top_k)
        if as_json:
            _print_json({"query": query, "hits": [_hit(hit) for hit in result.hits], "note": result.note})
        else:
            _print_hits(result)


@app.command()
def ask(
    question: Annotated[str, typer.Argument(help="What you want to know")],
    thread: Annotated[str | None, typer.Option("--thread", metavar="ID", help="Continue or begin this thread")] = None,
    trace: Annotated[bool, typer.Option("--trace", help="Show the searches")] = False,
    model: Annotated[str | None, typer.Option("--model", help="offline or openai:NAME [GRAPHRAG_MODEL]")] = None,
    kb: KbOption = None,
    tenant: TenantOption = DEFAULT_TENANT,
    group: GroupsOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Answer a question from the knowledge base, with citations."""
    with _one_line_errors(debug=debug):
        settings = _settings(kb, model=model)
        with _opened(settings, must_exist=True) as knowledge:
            answer = asyncio.run(_ask(settings, knowledge, question, thread, _principal(tenant, group)))
        if as_json:
            _print_json(answer.as_dict())
        else:
            _print_answer(answer, with_trace=trace)


def main() -> None:
    """Entry point of the command. A `.env` in the current folder fills in what the environment leaves open."""
    load_dotenv(".env")
    app()


@contextmanager
def _one_line_errors(*, debug: bool) -> Iterator[None]:
    """Errors as one line on stderr and exit code 1; with `--debug` the traceback."""
    try:
        yield
    except Exception as error:
        if debug:
            raise
        told = str(error) if isinstance(error, GraphragError) else f"{type(error).__name__}: {error} (see --debug)"
        err.print(f"error: {escape(' '.join(told.splitlines()))}", soft_wrap=True)
        raise typer.Exit(1) from None


async def _ask(
    settings: Settings, knowledge: KnowledgeBase, question: str, thread: str | None, principal: Principal
) -> Answer:
    kind = settings.checkpointer if thread else "memory"
    async with open_checkpointer(kind, _own_folder(settings) / "threads.sqlite") as checkpointer:
        agent = RagAgent(knowledge=knowledge, checkpointer=checkpointer, settings=settings)
        with err.status("searching and reading ..."):
            return await agent.aask(question, thread=thread, principal=principal)


def _settings(kb: str | None, **given: str | None) -> Settings:
    named = {"kb": kb, **given}
    return load_settings(**{name: value for name, value in named.items() if value is not None})


def _own_folder(settings: Settings) -> Path:
    """Where threads are kept: beside the knowledge base, or here where that is on a server."""
    return Path(settings.kb if has_folder(settings.kb) else ".graphrag")


@contextmanager
def _opened(settings: Settings, *, must_exist: bool) -> Iterator[KnowledgeBase]:
    if must_exist and has_folder(settings.kb) and not Path(settings.kb).is_dir():
        raise KnowledgeBaseError(
            f"there is no knowledge base in {settings.kb!r}: "
            f"make one with graphrag-agent ingest PATH --kb {settings.kb}"
        )
    with open_knowledge_base(settings) as knowledge:
        yield knowledge


@contextmanager
def _progress_bar() -> Iterator[Callable[[int, int, str], None]]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True) as bar:
        task = bar.add_task("reading", total=None)

        def show(done: int, total: int, name: str) -> None:
            bar.update(task, completed=done, total=total, description=escape(Path(name).name[:30]))

        yield show


def _principal(tenant: str, groups: list[str] | None) -> Principal:
    return Principal(tenant=tenant, groups=tuple(groups or ()))


def _hit(hit: Hit) -> dict[str, Any]:
    chunk = hit.chunk
    return {
        "id": hit.id,
        "document_id": chunk.document_id,
        "title": chunk.title,
        "source": chunk.source,
        "page": chunk.page,
        "heading": chunk.heading,
        "score": hit.score,
        "text": chunk.text,
        "start": chunk.start,
        "end": chunk.end,
    }


def _print_json(value: Any) -> None:
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def _print_report(report: IngestReport, *, as_json: bool) -> None:
    failed = [{"path": path, "error": error} for path, error in report.failed]
    if as_json:
        counts = {"documents": report.documents, "chunks": report.chunks, "unchanged": report.unchanged}
        speed = {"seconds": round(report.seconds, 3), "chunks_per_second": round(report.chunks_per_second)}
        _print_json({**counts, **speed, "failed": failed})
    else:
        pace = f" ({report.chunks_per_second:.0f} chunks a second)" if report.chunks else ""
        out.print(f"{report.documents} documents, {report.chunks} chunks{pace}; {report.unchanged} unchanged")
    for path, error in report.failed:
        err.print(f"failed: {escape(path)}: {escape(error.removeprefix(f'{path}: '))}", soft_wrap=True)


def _print_hits(result: SearchResult) -> None:
    for hit in result.hits:
        chunk = hit.chunk
        out.print(f"[bold]\\[{hit.id}][/bold] {hit.score:.3f} {escape(_place(chunk.title, chunk.heading))}")
        out.print(f"  {escape(_source(chunk.source, chunk.page))}", style="dim")
        out.print(f"  {escape(_shortened(chunk.text))}")
    if result.note:
        out.print(f"Note: {escape(result.note)}")


def _print_answer(answer: Answer, *, with_trace: bool) -> None:
    out.print(escape(answer.text))
    if answer.citations:
        out.print("\nSources", style="bold")
    for citation in answer.citations:
        place = _place(citation.title, citation.heading)
        out.print(
            f"  [bold]\\[{citation.id}][/bold] {escape(place)} ({escape(_source(citation.source, citation.page))})"
        )
    if with_trace:
        out.print("\nSearches", style="bold")
        for call in answer.trace:
            asked = call.arguments.get("query") or json.dumps(dict(call.arguments), ensure_ascii=False)
            found = "failed" if call.is_error else f"{call.found} found"
            out.print(f"  {call.tool}: {escape(str(asked))} ({found}, {call.seconds * 1000:.0f} ms)")
        outcome = answer.outcome
        out.print(f"  {outcome['ending']} after {outcome['rounds']} rounds in {outcome['seconds']:.2f} s")


def _place(title: str, heading: str) -> str:
    return title if not heading or heading == title else f"{title} > {heading.removeprefix(f'{title} > ')}"


def _source(source: str, page: int | None) -> str:
    return f"{source}, page {page}" if page else source


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SNIPPET_CHARACTERS else f"{line[:SNIPPET_CHARACTERS]} ..."
