"""The tool that searches the knowledge base."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Annotated, Any, Protocol, Unpack, runtime_checkable

from langchain_core.tools import InjectedToolArg, StructuredTool
from pydantic import Field

from graphrag_agent.context import TOP_K_MAX
from graphrag_agent.documents import Hit, short_id
from graphrag_agent.retrieval.scope import Scope
from graphrag_agent.retrieval.search.merging import Merged, merge_neighbours
from graphrag_agent.retrieval.search.options import SearchChoices
from graphrag_agent.retrieval.search.result import SearchResult
from graphrag_agent.retrieval.search.strategies import QueryWriter, Strategy
from graphrag_agent.retrieval.search.trace import compact_trace
from graphrag_agent.tools.evidence_message import evidence_of, render_evidence
from graphrag_agent.tools.spec import ReadText, ToolSpec

DEFAULT_TOP_K = 5
"""Hits of a search where the model says nothing else."""

SEARCH_SECONDS = 20.0
"""A search takes milliseconds; this is for a stuck disk or a remote embedder."""


class Searchable(Protocol):
    """What the tool needs of a knowledge base."""

    async def asearch(
        self, query: str, *, scope: Scope | None = None, top_k: int = 5, **choices: Unpack[SearchChoices]
    ) -> SearchResult:
        """Hits for the query inside the scope, best first. Choices come only from requests that ask for them."""
        ...


@runtime_checkable
class Readable(Protocol):
    """A knowledge base whose documents can be read: neighbouring passages become one, and cited ones can come back."""

    async def aread(
        self, document_id: str, *, start: int = 0, end: int | None = None, scope: Scope | None = None
    ) -> str:
        """The document's text from `start` to `end`. Raises DocumentNotFoundError when it isn't in the scope."""
        ...


def build_knowledge_search(knowledge: Searchable, *, query_writer: QueryWriter | None = None) -> ToolSpec:
    """A `knowledge_search` over this knowledge base; scope, strategy and rerank of each call are injected by the loop.

    `query_writer` writes for the strategy that a request asks for. The artifact has the places of the passages and a
    short `trace` of the search.
    """

    async def knowledge_search(
        query: Annotated[str, Field(min_length=1, description="What to look for, in the user's language; one topic")],
        scope: Annotated[Any, InjectedToolArg],
        top_k: Annotated[int, Field(ge=1, le=TOP_K_MAX, description="How many passages to return")] = DEFAULT_TOP_K,
        source_type: Annotated[str | None, Field(description="Search only this format, for example md or pdf")] = None,
        document_ids: Annotated[list[str] | None, Field(description="Search only these documents")] = None,
        strategy: Annotated[Any, InjectedToolArg] = None,
        rerank: Annotated[Any, InjectedToolArg] = None,
    ) -> tuple[str, dict[str, Any]]:
        """Search the knowledge base for passages that answer a question.

        One topic a call: look for A and B in two calls. Use it for anything that the documents may know. Don't use it
        for small talk or for rewriting a text that is already given. Each passage comes with an id; cite it in the
        answer as [id].
        """
        narrowed = scope.narrowed(
            document_ids=document_ids, source_types=None if source_type is None else [source_type]
        )
        asked: SearchChoices = {} if strategy is None else {"strategy": Strategy(strategy, query_writer)}
        if rerank is False:
            asked["rerank"] = False
        result = await knowledge.asearch(query, scope=narrowed, top_k=top_k, **asked)
        merged = await _merged(knowledge, result.hits, narrowed)
        content, artifact = render_evidence(evidence_of(merged.hits, merged.chunk_ids), note=result.note)
        return content, {**artifact, **_trace(result, merged)}

    tool = StructuredTool.from_function(
        coroutine=knowledge_search,
        name="knowledge_search",
        description=inspect.cleandoc(knowledge_search.__doc__ or ""),
        response_format="content_and_artifact",
    )
    read = reader_of(knowledge) if isinstance(knowledge, Readable) else None
    return ToolSpec(tool, family="search", side_effect_free=True, timeout_seconds=SEARCH_SECONDS, read=read)


def reader_of(knowledge: Readable) -> ReadText:
    """What reads the documents of this knowledge base for a tool's spec."""

    async def read(document_id: str, start: int, end: int, scope: Scope) -> str:
        return await knowledge.aread(document_id, start=start, end=end, scope=scope)

    return read


async def _merged(knowledge: Searchable, hits: Sequence[Hit], scope: Scope) -> Merged:
    if not isinstance(knowledge, Readable):
        return Merged(tuple(hits), {})
    read = knowledge.aread
    return await merge_neighbours(
        hits, lambda document_id, start, end: read(document_id, start=start, end=end, scope=scope)
    )


def _trace(result: SearchResult, merged: Merged) -> dict[str, Any]:
    trace = compact_trace(result)
    if not trace:
        return {}
    into = {short_id(name): len(others) for name, others in merged.chunk_ids.items()}
    return {"trace": {**trace, **({"merged_into": into} if into else {})}}
