"""What the commands print: for people, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.table import Table

from graphrag_agent.documents import Hit
from graphrag_agent.retrieval.ingestion.pipeline import FailedFile, IngestReport
from graphrag_agent.retrieval.search.result import SearchResult
from graphrag_agent.terminal import err, out, print_json, shown

if TYPE_CHECKING:
    from graphrag_agent.conversation.answer import Answer

SNIPPET_CHARACTERS = 240
"""About three lines of a terminal."""
SHOWN_DROPPED = 20
"""A terminal's worth; with --json all are there."""


def hit_fields(hit: Hit) -> dict[str, Any]:
    """A hit as JSON."""
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


def leg_fields(hit: Hit) -> dict[str, Any]:
    """Where each leg ranked the hit, as JSON."""
    return {leg: {"rank": at.rank, "score": at.score} for leg, at in hit.legs.items()}


def print_report(report: IngestReport, *, as_json: bool) -> None:
    """What an ingest did; failures go to stderr."""
    failed = [{"path": path, "error": error} for path, error in report.failed]
    if as_json:
        counts = {"documents": report.documents, "chunks": report.chunks, "unchanged": report.unchanged}
        speed = {"seconds": round(report.seconds, 3), "chunks_per_second": round(report.chunks_per_second)}
        print_json({**counts, **speed, "failed": failed, "pending": report.pending})
    else:
        pace = f" ({report.chunks_per_second:.0f} chunks a second)" if report.chunks else ""
        out.print(f"{report.documents} documents, {report.chunks} chunks{pace}; {report.unchanged} unchanged")
    print_problems(report.failed, report.pending, report.embedding_problem)


def print_problems(failed: Sequence[FailedFile], pending: int, problem: str | None) -> None:
    """Files that failed, and why passages have no vectors, on stderr."""
    for path, error in failed:
        err.print(f"failed: {shown(path)}: {shown(error.removeprefix(f'{path}: '))}", soft_wrap=True)
    if problem:
        told = f"{pending} chunks are found by words only so far: {problem}; try graphrag-agent reembed"
        err.print(shown(told), soft_wrap=True)


def print_hits(result: SearchResult) -> None:
    """Passages, a line or three each."""
    for hit in result.hits:
        chunk = hit.chunk
        out.print(f"[bold]\\[{hit.id}][/bold] {hit.score:.3f} {shown(_place(chunk.title, chunk.heading))}")
        out.print(f"  {shown(_source(chunk.source, chunk.page))}", style="dim")
        out.print(f"  {shown(_shortened(chunk.text))}")
    if result.note:
        out.print(f"Note: {shown(result.note)}")


def print_search_trace(result: SearchResult) -> None:
    """How the hits were found and what was dropped."""
    legs = list(dict.fromkeys(leg for hit in result.hits for leg in hit.legs))
    table = Table("id", "score", *legs, "source", title="\nHow the hits were found", title_justify="left")
    for hit in result.hits:
        places = [f"{at.rank} ({at.score:.3g})" if (at := hit.legs.get(leg)) else "-" for leg in legs]
        table.add_row(hit.id, f"{hit.score:.3f}", *places, shown(_source(hit.chunk.source, hit.chunk.page)))
    if result.hits:
        out.print(table, soft_wrap=False)
    for line in SearchResult(result.query, (), trace=result.trace).summary():
        out.print(shown(line))
    for item in result.trace.get("dropped", ())[:SHOWN_DROPPED]:
        because = f"{item['why']} of {item['duplicate_of']}" if "duplicate_of" in item else item["why"]
        told = f"{item['rank']}. {item['source']} ({item['score']:.3f}): {because}"
        out.print(f"  {shown(told)}", style="dim")


def print_answer(answer: Answer, *, with_trace: bool) -> None:
    """The answer, its sources, and the searches if they are asked for; what to know of it on stderr."""
    out.print("\n".join(map(shown, answer.text.split("\n"))))
    if answer.citations:
        out.print("\nSources", style="bold")
    for citation in answer.citations:
        place = _place(citation.title, citation.heading)
        out.print(f"  [bold]\\[{citation.id}][/bold] {shown(place)} ({shown(_source(citation.source, citation.page))})")
    for warning in answer.outcome["warnings"]:
        err.print(f"note: {shown(warning)}", soft_wrap=True)
    if with_trace:
        out.print("\nSearches", style="bold")
        for call in answer.trace:
            asked = call.arguments.get("query") or json.dumps(dict(call.arguments), ensure_ascii=False)
            found = "failed" if call.is_error else f"{call.found} found"
            out.print(f"  {call.tool}: {shown(str(asked))} ({found}, {call.seconds * 1000:.0f} ms)")
        outcome = answer.outcome
        out.print(f"  {outcome['ending']} after {outcome['rounds']} rounds in {outcome['seconds']:.2f} s")


def _place(title: str, heading: str) -> str:
    return title if not heading or heading == title else f"{title} > {heading.removeprefix(f'{title} > ')}"


def _source(source: str, page: int | None) -> str:
    return f"{source}, page {page}" if page else source


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SNIPPET_CHARACTERS else f"{line[:SNIPPET_CHARACTERS]} ..."
