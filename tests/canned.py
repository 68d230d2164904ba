"""A knowledge base for tests of the loop: every query finds what it is told to find."""

from __future__ import annotations

import uuid
from collections.abc import Callable

from graphrag_agent.documents import Chunk, Hit, assign_short_ids
from graphrag_agent.retrieval.scope import Scope
from graphrag_agent.retrieval.search.result import SearchResult


def passage(text: str, *, name: str = "leave.md", start: int = 0) -> Chunk:
    """A chunk of the document of that name."""
    return Chunk(
        id=str(uuid.uuid5(uuid.NAMESPACE_URL, f"{name}|{text}")),
        document_id=name.partition(".")[0],
        tenant="default",
        collection="default",
        groups=(),
        source=name,
        source_type=name.rpartition(".")[2],
        title=name.partition(".")[0].title(),
        heading="Policy",
        page=None,
        position=0,
        text=text,
        start=start,
        end=start + len(text),
    )


class CannedKnowledge:
    """Answers `asearch` with passages made from the query; keeps what it was asked."""

    def __init__(self, find: Callable[[str], list[str]] = lambda query: [f"All about {query}."]) -> None:
        self.find = find
        self.queries: list[str] = []
        self.scopes: list[Scope | None] = []
        self.top_ks: list[int] = []

    async def asearch(self, query: str, *, scope: Scope | None = None, top_k: int = 5) -> SearchResult:
        self.queries.append(query)
        self.scopes.append(scope)
        self.top_ks.append(top_k)
        chunks = [passage(text, start=100 * at) for at, text in enumerate(self.find(query))][:top_k]
        ids = assign_short_ids([chunk.id for chunk in chunks])
        hits = tuple(Hit(ids[chunk.id], chunk, 1.0 - 0.1 * at) for at, chunk in enumerate(chunks))
        return SearchResult(query, hits, "" if hits else "nothing was found; try other words")


def id_of(text: str, **place: str) -> str:
    """The short id that this passage is cited by."""
    chunk = passage(text, **place)  # type: ignore[arg-type]
    return assign_short_ids([chunk.id])[chunk.id]
