"""The command `graphrag-agent`: ingest, search, ask, serve.

Exit codes: 0 done, 1 failed (one line says why), 2 wrong usage, 130 interrupted. An ingest in which some files
failed is done; their names and reasons are on stderr and in the JSON. A question that the model failed at, or wrote no
answer to, has failed; what is printed says why and what was found.
"""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from importlib import import_module
from typing import Annotated, Any

import typer
from dotenv import load_dotenv

from graphrag_agent import cli_threads, server
from graphrag_agent.cli_output import (
    hit_fields,
    leg_fields,
    print_answer,
    print_hits,
    print_problems,
    print_report,
    print_search_trace,
)
from graphrag_agent.errors import KnowledgeBaseError
from graphrag_agent.identity import DEFAULT_TENANT, acting_as
from graphrag_agent.retrieval.scope import Scope
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
    shown,
)

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Ask your documents; answers cite their sources.")
app.add_typer(cli_threads.app, name="threads")


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
        print_report(report, as_json=as_json)
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
        print_problems(report.failed, report.pending, report.embedding_problem)
        for source in report.missing:
            err.print(f"no file: {shown(source)}", soft_wrap=True)


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
            out.print(shown(told))


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
            vectors = shown(counted.embedder) if counted.embedder else "none"
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
            found: dict[str, Any] = {
                "query": query,
                "hits": [hit_fields(hit) for hit in result.hits],
                "note": result.note,
            }
            traced = {"legs": [leg_fields(hit) for hit in result.hits], "trace": result.trace}
            print_json({**found, **(traced if trace else {})})
        else:
            print_hits(result)
            if trace:
                print_search_trace(result)


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
            # not at the top: LangGraph takes a second, and the other commands do without it
            asking = import_module("graphrag_agent.cli_asking")
            answer = asyncio.run(
                asking.ask_once(settings, knowledge, question, thread, chosen_principal(tenant, group))
            )
        if as_json:
            print_json(answer.as_dict())
        else:
            print_answer(answer, with_trace=trace)
    if asking.has_failed(answer):
        raise typer.Exit(1)


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
    try:
        load_dotenv(".env")
    except (OSError, ValueError) as error:
        told = getattr(error, "strerror", None) or type(error).__name__
        err.print(f"error: the file .env here can't be read ({told}); save it as UTF-8 text", soft_wrap=True)
        raise SystemExit(1) from None
    app()
