"""Documents made by hand, as the tools that open documents want them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from graphrag_agent.documents import Chunk, Document, Hit, short_id
from graphrag_agent.errors import DocumentNotFoundError
from graphrag_agent.graph.policy.pairing import tool_message
from graphrag_agent.retrieval.knowledge_base import KnowledgeBaseStats
from graphrag_agent.retrieval.scope import Scope
from graphrag_agent.retrieval.search.result import SearchResult
from graphrag_agent.retrieval.tokenizer import count_terms
from graphrag_agent.tools.spec import ToolSpec

SCOPE = Scope("default")
Piece = tuple[str, int | None, str]
"""Text of a chunk, its page, its heading."""


def document(
    name: str, pieces: Sequence[Piece], *, between: str = "\n\n", **fields: Any
) -> tuple[Document, list[Chunk]]:
    """The document `name.md` that the pieces make up, and its chunks."""
    text, chunks = "", list[Chunk]()
    access: dict[str, Any] = {"tenant": "default", "collection": "default", "groups": (), "source_type": "md"}
    access |= {"source": f"notes/{name}.md", "title": name.title()}
    access |= {key: fields[key] for key in fields if key in access}
    for position, (piece, page, heading) in enumerate(pieces):
        text += between if text else ""
        place: dict[str, Any] = {"page": page, "heading": heading, "position": position, "start": len(text)}
        text += piece
        chunks.append(Chunk(f"{name}-{position}", name, text=piece, end=len(text), **access, **place))
    rest = {key: fields[key] for key in fields if key not in access}
    return Document(name, text=text, content_hash="h", chunk_count=len(chunks), **access, **rest), chunks


class Shelf:
    """A knowledge base of such documents; a passage is found by any word of the query."""

    def __init__(self, *documents: tuple[Document, list[Chunk]]) -> None:
        self.held = {document.id: (document, chunks) for document, chunks in documents}
        self.scopes: list[Scope | None] = []
        self.lists = 0

    async def asearch(self, query: str, *, scope: Scope | None = None, top_k: int = 5, **_: Any) -> SearchResult:
        wanted = count_terms(query).keys()
        found = [
            chunk for _, chunks in self._seen(scope) for chunk in chunks if wanted & count_terms(chunk.text).keys()
        ]
        return SearchResult(query, tuple(Hit(short_id(chunk.id), chunk, 1.0) for chunk in found[:top_k]))

    async def adocuments(self, scope: Scope | None = None) -> list[Document]:
        self.lists += 1
        return sorted(
            (replace(item, text="") for item, _ in self._seen(scope)), key=lambda item: (item.source, item.id)
        )

    async def adocument(self, document_id: str, scope: Scope | None = None) -> Document:
        for item, _ in self._seen(scope):
            if item.id == document_id:
                return item
        raise DocumentNotFoundError(f"no document {document_id!r}")

    async def achunks(self, document_id: str, scope: Scope | None = None) -> list[Chunk]:
        return [chunk for item, chunks in self._seen(scope) for chunk in chunks if item.id == document_id]

    async def aread(
        self, document_id: str, *, start: int = 0, end: int | None = None, scope: Scope | None = None
    ) -> str:
        return (await self.adocument(document_id, scope)).text[start:end]

    async def astats(self, scope: Scope | None = None) -> KnowledgeBaseStats:
        seen = self._seen(scope)
        return KnowledgeBaseStats(len(seen), sum(len(chunks) for _, chunks in seen), None)

    def _seen(self, scope: Scope | None) -> list[tuple[Document, list[Chunk]]]:
        self.scopes.append(scope)
        return [held for held in self.held.values() if (scope or SCOPE).allows(held[0])]


async def run_tool(spec: ToolSpec, *, scope: Scope = SCOPE, **arguments: Any) -> Any:
    """The tool's message, as the loop gets it from a model's arguments."""
    assert spec.direct is not None
    given = spec.validate(arguments) | ({"scope": scope} if "scope" in spec.injected else {})
    return tool_message({"id": "1", "name": spec.name}, *await spec.direct(**given))
