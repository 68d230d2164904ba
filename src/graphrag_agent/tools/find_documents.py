"""The tool that finds whole documents: by what they are called and by what stands in them."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Sequence
from typing import Annotated, Any, Protocol, runtime_checkable

from langchain_core.tools import InjectedToolArg, StructuredTool
from pydantic import Field

from graphrag_agent.citations import Evidence
from graphrag_agent.documents import Chunk, Document
from graphrag_agent.retrieval.scope import Scope
from graphrag_agent.retrieval.search.fusion import Ranking, fuse_rrf
from graphrag_agent.tools._document_names import KnownNames, RankedNames
from graphrag_agent.tools._library import MAX_NAMED_DOCUMENTS, Library, listed, page_ranges, plain
from graphrag_agent.tools.evidence_message import render_evidence
from graphrag_agent.tools.knowledge_search import Searchable
from graphrag_agent.tools.made_evidence import made_evidence
from graphrag_agent.tools.spec import SEARCH_FAMILY, ToolSpec

DEFAULT_LIMIT, MAX_LIMIT = 5, 20
"""Documents in one answer: each takes about a hundred tokens."""

FIND_SECONDS = 20.0
"""As a search."""

PASSAGES = 50
"""Of the search behind: enough that a document with many good passages doesn't hide the others."""

_SHOWN_HEADINGS, _HEADING_CHARACTERS = 12, 60
_MAX_SKIP = 1_000_000


@runtime_checkable
class Findable(Library, Searchable, Protocol):
    """What the tool needs of a knowledge base."""


def build_find_documents(knowledge: Findable) -> ToolSpec:
    """A `find_documents` over this knowledge base; the scope of each call is injected by the loop.

    Names are matched by words with BM25 over the scope's documents alone, passages by a search of the knowledge base;
    the two rankings are fused. Each document is evidence of its own, with its id, source, format, pages and headings.
    """
    names = KnownNames(knowledge)

    async def find_documents(
        scope: Annotated[Any, InjectedToolArg],
        query: Annotated[
            str | None,
            Field(
                min_length=1,
                max_length=2_000,
                description="Title, file name or subject; leave out to list all documents by source",
            ),
        ] = None,
        limit: Annotated[int, Field(ge=1, le=MAX_LIMIT, description="How many documents to return")] = DEFAULT_LIMIT,
        skip: Annotated[int, Field(ge=0, le=_MAX_SKIP, description="Leave out so many, to go on with a list")] = 0,
        source_type: Annotated[str | None, Field(description="Only this format, for example md or pdf")] = None,
    ) -> tuple[str, dict[str, Any]]:
        """Find documents by title, file name or subject, or list what there is.

        Use it when the user names a document, asks which documents there are, or wants a whole one read or summarised:
        it gives the ids for read_document, summarize_documents and knowledge_search. It doesn't answer questions; for a
        fact use knowledge_search.
        """
        kind = (source_type or "").strip().lstrip(".").lower()
        narrowed = scope.narrowed(source_types=[kind] if kind else None)
        wanted, count = (query or "").strip(), (await knowledge.astats(narrowed)).documents
        looks_at_names = count <= MAX_NAMED_DOCUMENTS
        if wanted:
            ids = await _ranked(knowledge, names if looks_at_names else None, wanted, narrowed, count)
            found = await _stored(knowledge, ids, narrowed)
        else:
            found = await knowledge.adocuments(narrowed) if looks_at_names else []
        chosen = found[skip : skip + limit]
        outlines = await asyncio.gather(*(knowledge.achunks(document.id, narrowed) for document in chosen))
        cards = [_card(document, chunks) for document, chunks in zip(chosen, outlines, strict=True)]
        if kind and not count:
            told = f"There are no documents of the format {plain(kind)!r} here: try another one, or leave it out."
            return render_evidence([], note=told)
        return render_evidence(cards, note=_note(len(cards), len(found), count, skip, wanted, looks_at_names))

    tool = StructuredTool.from_function(
        coroutine=find_documents,
        name="find_documents",
        description=inspect.cleandoc(find_documents.__doc__ or ""),
        response_format="content_and_artifact",
    )
    return ToolSpec(tool, family=SEARCH_FAMILY, side_effect_free=True, timeout_seconds=FIND_SECONDS)


async def _ranked(knowledge: Findable, names: KnownNames | None, query: str, scope: Scope, count: int) -> list[str]:
    """Document ids: those called just so, then the others by their places in both rankings, names before passages."""
    result = await knowledge.asearch(query, scope=scope, top_k=PASSAGES, rerank=False)
    by_passage = list(dict.fromkeys(hit.chunk.document_id for hit in result.hits))
    by_name = await names.rank(query, scope, count=count) if names else RankedNames([], [])
    scores = dict(fuse_rrf({"names": _scored(by_name.alike), "passages": _scored(by_passage)}))
    fused = sorted(dict.fromkeys([*by_name.alike, *by_passage]), key=lambda name: -scores[name])
    return list(dict.fromkeys([*by_name.exact, *fused]))


def _scored(ids: Sequence[str]) -> Ranking:
    return [(document_id, 1 / rank) for rank, document_id in enumerate(ids, start=1)]


async def _stored(knowledge: Findable, ids: Sequence[str], scope: Scope) -> list[Document]:
    """The documents as they are now, in this order; what is gone, or no longer to be seen, is left out."""
    if not ids:
        return []
    known = {document.id: document for document in await knowledge.adocuments(scope.narrowed(document_ids=ids))}
    return [known[name] for name in ids if name in known]


def _card(document: Document, chunks: Sequence[Chunk]) -> Evidence:
    pages = sorted({chunk.page for chunk in chunks if chunk.page is not None})
    below = f"{document.title} > "
    named = (chunk.heading.removeprefix(below) for chunk in chunks if chunk.heading != document.title)
    headings = dict.fromkeys(plain(heading, _HEADING_CHARACTERS) for heading in named if heading)
    size = f"{document.chunk_count} passages" if document.chunk_count != 1 else "1 passage"
    lines = [
        f"document_id: {document.id}",
        f"source: {plain(document.source)}",
        f"type: {plain(document.source_type)}, {size}" + (f", pages {page_ranges(pages)}" if pages else ""),
    ]
    description = document.metadata.get("description")
    if isinstance(description, str) and description.strip():
        lines.append(f"description: {plain(description, 200)}")
    if headings:
        lines.append(f"headings: {listed(headings, _SHOWN_HEADINGS)}")
    title = plain(document.title)
    return made_evidence(f"document:{document.id}", title=title, source=document.source, text="\n".join(lines))


def _note(shown: int, found: int, count: int, skip: int, query: str, looked_at_names: bool) -> str:
    by_text = "" if looked_at_names else f" {count} documents are too many to look at names."
    if by_text and not query:
        return f"{by_text.lstrip()} Give a query."
    if not count or not (found or query):
        return "There are no documents here."
    if not found:
        more = "." if by_text else ", or leave out the query to list all."
        return f"No document matched: try other words{more}{by_text}"
    if not shown:
        return f"There are {found} only: skip less than {found}.{by_text}"
    which = f"of {found} found" if query else f"of {found}"
    more = f"; skip={skip + shown} shows the next ones" if skip + shown < found else ""
    return f"Documents {skip + 1} to {skip + shown} {which}{more}.{by_text}"
