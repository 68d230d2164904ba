"""A knowledge base as a LangChain retriever, for chains and tools made elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever

from graphrag_agent.documents import Hit
from graphrag_agent.retrieval.scope import Scope
from graphrag_agent.retrieval.search.result import SearchResult


@runtime_checkable
class Searchable(Protocol):
    """What the retriever needs of a knowledge base."""

    def search(
        self, query: str, *, scope: Scope | None = None, top_k: int = 5, legs: Sequence[str] | None = None
    ) -> SearchResult: ...

    async def asearch(
        self, query: str, *, scope: Scope | None = None, top_k: int = 5, legs: Sequence[str] | None = None
    ) -> SearchResult: ...


class KnowledgeRetriever(BaseRetriever):
    """Searches a knowledge base; `invoke(query, k=3)` asks for another number of documents.

    A document is one hit: its text, the chunk's id as `id`, and where it was found in `metadata`.
    """

    knowledge: Searchable
    k: int = 5
    """Most documents of one call."""
    scope: Scope | None = None
    """None: what the principal who acts at the time of the call may see."""
    legs: tuple[str, ...] | None = None
    """None: all there are."""

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        result = self.knowledge.search(query, **self._options(k))
        return [document_of(hit) for hit in result.hits]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        result = await self.knowledge.asearch(query, **self._options(k))
        return [document_of(hit) for hit in result.hits]

    def _options(self, k: int | None) -> dict[str, Any]:
        return {"scope": self.scope, "top_k": self.k if k is None else k, "legs": self.legs}


def document_of(hit: Hit) -> Document:
    """The hit as a LangChain document."""
    chunk = hit.chunk
    place = {name: getattr(chunk, name) for name in ("source", "title", "heading", "page", "start", "end")}
    metadata = {"id": hit.id, **place, "score": hit.score, "document_id": chunk.document_id}
    return Document(id=chunk.id, page_content=chunk.text, metadata=metadata)
