"""The command `graphrag-agent`: ingest, search, ask, serve.

Exit codes: 0 done, 1 failed (one line says why), 2 wrong usage. An ingest in which some files failed is
done; their names and reasons are on stderr and in the JSON.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from dotenv import load_dotenv
from rich.markup import escape
from rich.table import Table

from graphrag_agent import cli_threads, server
from graphrag_agent.agent import RagAgent
from graphrag_agent.conversation.answer import Answer
from graphrag_agent.documents import Hit
from graphrag_agent.errors import KnowledgeBaseError
from graphrag_agent.identity import DEFAULT_TENANT, Principal, acting_as
from graphrag_agent.persistence.checkpointers import open_checkpointer
from graphrag_agent.retrieval.ingestion.pipeline import FailedFile, IngestReport
from graphrag_agent.retrieval.knowledge_base import KnowledgeBase
from graphrag_agent.retrieval.scope import Scope
from graphrag_agent.retrieval.search.result import SearchResult
from graphrag_agent.retrieval.stores.opening import has_folder
from graphrag_agent.settings import Settings
from graphrag_agent.terminal import (
    DebugOption,
    GroupsOption,
    JsonOption,
    KbOption,
    TenantOption,
    chosen_principal,
    chosen_settings,
    err,
    one_line_errors,
    opened,
    out,
    print_json,
    progress_bar,
)

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Ask your documents; answers cite their sources.")
app.add_typer(cli_threads.app, name="threads")

SNIPPET_CHARACTERS = 240
"""About three lines of a terminal."""
SHOWN_DROPPED = 20
"""A terminal's worth; with --json all are there."""
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Escape sequences, line breaks, changes of direction, halves of characters."""


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
    with one_line_errors(debug=debug):
        with opened(chosen_settings(kb), must_exist=False) as knowledge, progress_bar() as progress:
            report = knowledge.ingest(
                paths, collection=collection, tenant=tenant, groups=group or (), progress=progress
            )
        _print_report(report, as_json=as_json)
        if not report.documents and not report.unchanged:
            reason = "every file failed" if report.failed else f"no supported files in {', '.join(map(repr, paths))}"
            raise KnowledgeBaseError(f"nothing was ingested: {reason}")


@app.command()
def update(
    document_ids: Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="Documents; all if none")] = None,
    remove_missing: Annotated[bool, typer.Option("--remove-missing", help="Delete what has no file any more")] = False,
    kb: KbOption = None,
    tenant: TenantOption = DEFAULT_TENANT,
    group: GroupsOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Bring stored documents to what their files say now; each stays in its collection and groups."""
    with one_line_errors(debug=debug):
        with opened(chosen_settings(kb)) as knowledge, progress_bar() as progress:
            scope = Scope.of(chosen_principal(tenant, group))
            report = knowledge.update(
                document_ids or None, remove_missing=remove_missing, scope=scope, progress=progress
            )
        failed = [failure._asdict() for failure in report.failed]
        if as_json:
            print_json({**asdict(report), "failed": failed})
        else:
            removed = f", {report.removed} removed" if remove_missing else ""
            out.print(f"{report.updated} updated, {report.unchanged} unchanged{removed}")
        _print_problems(report.failed, report.pending, report.embedding_problem)
        for source in report.missing:
            err.print(f"no file: {escape(_plain(source))}", soft_wrap=True)


@app.command()
def documents(
    kb: KbOption = None,
    tenant: TenantOption = DEFAULT_TENANT,
    group: GroupsOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """List what is in the knowledge base, with the ids that update and delete take."""
    with one_line_errors(debug=debug):
        with opened(chosen_settings(kb)) as knowledge:
            found = knowledge.documents(Scope.of(chosen_principal(tenant, group)))
        if as_json:
            print_json([{name: value for name, value in asdict(item).items() if name != "text"} for item in found])
        for item in () if as_json else found:
            told = f"{item.id}  {item.source}  ({item.collection}, {item.chunk_count} chunks)"
            out.print(escape(_plain(told)))


@app.command()
def delete(
    document_ids: Annotated[list[str], typer.Argument(metavar="ID...", help="As `documents` lists them")],
    kb: KbOption = None,
    tenant: TenantOption = DEFAULT_TENANT,
    group: GroupsOption = None,
    debug: DebugOption = False,
) -> None:
    """Take documents out of the knowledge base; their files stay."""
    with one_line_errors(debug=debug), opened(chosen_settings(kb)) as knowledge:
        scope = Scope.of(chosen_principal(tenant, group))
        unknown = [name for name in document_ids if not knowledge.delete(name, scope)]
        out.print(f"{len(document_ids) - len(unknown)} deleted")
        if unknown:
            raise KnowledgeBaseError(f"no document {unknown[0]!r} here; list them with graphrag-agent documents")


@app.command()
def stats(
    kb: KbOption = None,
    tenant: TenantOption = DEFAULT_TENANT,
    group: GroupsOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Count documents, chunks and chunks without a vector."""
    with one_line_errors(debug=debug):
        with opened(chosen_settings(kb)) as knowledge:
            counted = knowledge.stats(Scope.of(chosen_principal(tenant, group)))
        if as_json:
            print_json(counted._asdict())
        else:
            pending = f"; {counted.pending} chunks have no vector yet" if counted.embedder and counted.pending else ""
            vectors = escape(counted.embedder) if counted.embedder else "none"
            out.print(f"{counted.documents} documents, {counted.chunks} chunks; vectors: {vectors}{pending}")


@app.command()
def reembed(
    anew: Annotated[bool, typer.Option("--all", help="Make all anew, those of this embedder too")] = False,
    kb: KbOption = None,
    debug: DebugOption = False,
) -> None:
    """Make the vectors of all tenants that are missing or another embedder's; goes on where it was stopped."""
    with one_line_errors(debug=debug):
        with opened(chosen_settings(kb), reembed=True) as knowledge, progress_bar() as progress:
            report = knowledge.reembed(progress=progress) if anew else knowledge.embed_pending(progress=progress)
        out.print(f"{report.embedded} vectors made")
        if report.problem:
            raise KnowledgeBaseError(f"not all vectors could be made: {report.problem}")


@app.command()
def search(
    query: Annotated[str, typer.Argument(help="What to look for")],
    top_k: Annotated[int, typer.Option("--top-k", metavar="N", min=1, max=100, help="How many hits")] = 5,
    trace: Annotated[bool, typer.Option("--trace", help="Show how the hits were found and what was dropped")] = False,
    kb: KbOption = None,
    tenant: TenantOption = DEFAULT_TENANT,
    group: GroupsOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Show the passages that fit a query, best first."""
    with one_line_errors(debug=debug):
        with opened(chosen_settings(kb), must_exist=True) as knowledge, acting_as(chosen_principal(tenant, group)):
            result = knowledge.search(query, top_k=top_k)
        if as_json:
            found: dict[str, Any] = {"query": query, "hits": [_hit(hit) for hit in result.hits], "note": result.note}
            traced = {"legs": [_legs(hit) for hit in result.hits], "trace": result.trace}
            print_json({**found, **(traced if trace else {})})
        else:
            _print_hits(result)
            if trace:
                _print_search_trace(result)


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
    with one_line_errors(debug=debug):
        settings = chosen_settings(kb, model=model)
        with opened(settings, must_exist=True) as knowledge:
            answer = asyncio.run(_ask(settings, knowledge, question, thread, chosen_principal(tenant, group)))
        if as_json:
            print_json(answer.as_dict())
        else:
            _print_answer(answer, with_trace=trace)


@app.command()
def serve(
    host: Annotated[str, typer.Option("--host", metavar="H", help="Address; other machines need tokens")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", metavar="N", min=0, max=65535, help="0: any free one")] = 8000,
    tokens: Annotated[
        str | None, typer.Option("--tokens", metavar="FILE", help="Bearer tokens [GRAPHRAG_TOKENS]")
    ] = None,
    model: Annotated[str | None, typer.Option("--model", help="offline or openai:NAME [GRAPHRAG_MODEL]")] = None,
    kb: KbOption = None,
    debug: DebugOption = False,
) -> None:
    """Serve the agent over HTTP, with a page to try it, until interrupted."""
    with one_line_errors(debug=debug):
        settings = chosen_settings(kb, model=model, tokens=tokens)
        with opened(settings, must_exist=True):  # stays open, so that what is missing is told now
            server.serve(settings, host=host, port=port, started=lambda url: out.print(f"Chat at {url}/chat"))


def main() -> None:
    """Entry point of the command. A `.env` in the current folder fills in what the environment leaves open."""
    load_dotenv(".env")
    app()


async def _ask(
    settings: Settings, knowledge: KnowledgeBase, question: str, thread: str | None, principal: Principal
) -> Answer:
    kind = settings.checkpointer if thread else "memory"
    place, url = _own_folder(settings) / "threads.sqlite", settings.database_url.get_secret_value()
    async with open_checkpointer(kind, place, url=url) as checkpointer:
        agent = RagAgent(knowledge=knowledge, checkpointer=checkpointer, settings=settings)
        with err.status("searching and reading ..."):
            return await agent.aask(question, thread=thread, principal=principal)


def _own_folder(settings: Settings) -> Path:
    """Where threads are kept: beside the knowledge base, or here where that is on a server."""
    return Path(settings.kb if has_folder(settings.kb) else ".graphrag")


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


def _legs(hit: Hit) -> dict[str, Any]:
    return {leg: {"rank": at.rank, "score": at.score} for leg, at in hit.legs.items()}


def _print_report(report: IngestReport, *, as_json: bool) -> None:
    failed = [{"path": path, "error": error} for path, error in report.failed]
    if as_json:
        counts = {"documents": report.documents, "chunks": report.chunks, "unchanged": report.unchanged}
        speed = {"seconds": round(report.seconds, 3), "chunks_per_second": round(report.chunks_per_second)}
        print_json({**counts, **speed, "failed": failed, "pending": report.pending})
    else:
        pace = f" ({report.chunks_per_second:.0f} chunks a second)" if report.chunks else ""
        out.print(f"{report.documents} documents, {report.chunks} chunks{pace}; {report.unchanged} unchanged")
    _print_problems(report.failed, report.pending, report.embedding_problem)


def _print_problems(failed: Sequence[FailedFile], pending: int, problem: str | None) -> None:
    for path, error in failed:
        err.print(f"failed: {escape(path)}: {escape(error.removeprefix(f'{path}: '))}", soft_wrap=True)
    if problem:
        told = f"{pending} chunks are found by words only so far: {problem}; try graphrag-agent reembed"
        err.print(escape(_plain(told)), soft_wrap=True)


def _print_hits(result: SearchResult) -> None:
    for hit in result.hits:
        chunk = hit.chunk
        out.print(f"[bold]\\[{hit.id}][/bold] {hit.score:.3f} {escape(_place(chunk.title, chunk.heading))}")
        out.print(f"  {escape(_source(chunk.source, chunk.page))}", style="dim")
        out.print(f"  {escape(_shortened(chunk.text))}")
    if result.note:
        out.print(f"Note: {escape(_plain(result.note))}")


def _print_search_trace(result: SearchResult) -> None:
    legs = list(dict.fromkeys(leg for hit in result.hits for leg in hit.legs))
    table = Table("id", "score", *legs, "source", title="\nHow the hits were found", title_justify="left")
    for hit in result.hits:
        places = [f"{at.rank} ({at.score:.3g})" if (at := hit.legs.get(leg)) else "-" for leg in legs]
        table.add_row(hit.id, f"{hit.score:.3f}", *places, escape(_source(hit.chunk.source, hit.chunk.page)))
    if result.hits:
        out.print(table, soft_wrap=False)
    for line in SearchResult(result.query, (), trace=result.trace).summary():
        out.print(escape(_plain(line)))
    for item in result.trace.get("dropped", ())[:SHOWN_DROPPED]:
        because = f"{item['why']} of {item['duplicate_of']}" if "duplicate_of" in item else item["why"]
        told = f"{item['rank']}. {item['source']} ({item['score']:.3f}): {because}"
        out.print(f"  {escape(_plain(told))}", style="dim")


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
    return _plain(title if not heading or heading == title else f"{title} > {heading.removeprefix(f'{title} > ')}")


def _source(source: str, page: int | None) -> str:
    return _plain(f"{source}, page {page}" if page else source)


def _plain(text: str) -> str:
    """Without what a terminal obeys: documents are written by strangers."""
    return _CONTROLS.sub(" ", text)


def _shortened(text: str) -> str:
    line = " ".join(_plain(text).split())
    return line if len(line) <= SNIPPET_CHARACTERS else f"{line[:SNIPPET_CHARACTERS]} ..."
