"""A knowledge base as a LangChain tool, for agents made elsewhere."""

from __future__ import annotations

from langchain_core.documents import Document
from langchain_core.tools import BaseTool, StructuredTool
from pydantic import BaseModel, ConfigDict, Field, create_model

from graphrag_agent.context import TOP_K_MAX
from graphrag_agent.documents import Hit
from graphrag_agent.errors import SettingsError
from graphrag_agent.retrieval.evidence_tags import CLOSING_TAG, opening_tag, without_tags
from graphrag_agent.retrieval.retriever import Searchable, document_of
from graphrag_agent.retrieval.scope import Scope
from graphrag_agent.retrieval.search.result import SearchResult


def build_search_tool(
    knowledge: Searchable, *, name: str, description: str, k: int, scope: Scope | None = None
) -> BaseTool:
    """A tool whose content has each passage under its id, and whose artifact has the passages as documents.

    Without a `scope` each call sees what the principal who acts then may see; nothing that a model can say widens it.
    Raises SettingsError for an empty name or description, and for a `k` that is no number of passages.
    """
    if not 1 <= k <= TOP_K_MAX:
        raise SettingsError(f"k={k!r}: ask for 1 to {TOP_K_MAX} passages")
    if not name.strip() or not description.strip():
        raise SettingsError(f"name={name!r}, description={description!r}: a model needs both")

    def search(query: str, top_k: int = k) -> tuple[str, list[Document]]:
        return _shown(knowledge.search(query, scope=scope, top_k=top_k))

    async def asearch(query: str, top_k: int = k) -> tuple[str, list[Document]]:
        return _shown(await knowledge.asearch(query, scope=scope, top_k=top_k))

    return StructuredTool.from_function(
        search,
        asearch,
        name=name,
        description=description,
        args_schema=_arguments(k),
        response_format="content_and_artifact",
    )


def _arguments(k: int) -> type[BaseModel]:
    """Unknown arguments are refused: a model that names a tenant should learn that it can't."""
    query = Field(min_length=1, description="What to look for, in the user's language; one topic")
    top_k = Field(default=k, ge=1, le=TOP_K_MAX, description="How many passages to return")
    config = ConfigDict(extra="forbid")
    return create_model("KnowledgeQuery", __config__=config, query=(str, query), top_k=(int, top_k))


def _shown(result: SearchResult) -> tuple[str, list[Document]]:
    parts = [_passage(hit) for hit in result.hits] + ([f"Note: {result.note}"] if result.note else [])
    return "\n".join(parts), [document_of(hit) for hit in result.hits]


def _passage(hit: Hit) -> str:
    tag = opening_tag(id_=hit.id, title=hit.chunk.title, heading=hit.chunk.heading, page=hit.chunk.page)
    return f"{tag}\n{without_tags(hit.chunk.text)}\n{CLOSING_TAG}"
