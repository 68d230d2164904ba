"""The knowledge base that the settings name, opened now or with the first search."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Unpack, cast

from graphrag_agent.documents import Chunk, Document
from graphrag_agent.retrieval.knowledge_base import KnowledgeBase, KnowledgeBaseStats
from graphrag_agent.retrieval.scope import Scope
from graphrag_agent.retrieval.search.options import SearchChoices
from graphrag_agent.retrieval.search.rerank import resolve_reranker
from graphrag_agent.retrieval.search.result import SearchResult
from graphrag_agent.retrieval.search.strategies import QueryWriter, StrategyName
from graphrag_agent.retrieval.stores.opening import checked_folder, has_folder
from graphrag_agent.retrieval.stores.server_address import QdrantServer, is_server
from graphrag_agent.settings import OFFLINE, Settings


def home_of(settings: Settings) -> Path:
    """The folder for what is kept on this machine: the knowledge base's, or here where that is on a server."""
    return checked_folder(settings.kb if has_folder(settings.kb) else ".graphrag")


def open_knowledge_base(settings: Settings, *, reembed: bool = False) -> KnowledgeBase:
    """The knowledge base that the settings name; it is made where it isn't there yet.

    `reembed`: vectors of another embedder than theirs are dropped.
    """
    reranker = resolve_reranker(settings.reranker, model=settings.rerank_model)
    location: str | QdrantServer = settings.kb
    if is_server(settings.kb):
        names = ("prefix", "shards", "replicas", "write_consistency", "write_ordering", "timeout_seconds")
        location = QdrantServer(settings.kb, **{name: getattr(settings, f"qdrant_{name}") for name in names})
    return KnowledgeBase.open(
        location,
        embedder=settings.embedder,
        reranker=reranker,
        fusion=settings.fusion,
        strategy=settings.strategy,
        query_writer=_query_writer(settings.model, settings.strategy),
        diversity=settings.diversity,
        reembed=reembed,
    )


def _query_writer(model: str, strategy: str) -> QueryWriter | None:
    """The model as a writer of queries, loaded when first needed; None for the offline model, which only quotes."""
    if model == OFFLINE:
        return None
    writer = _LazyQueryWriter(model)
    if strategy != "direct":
        writer.load()  # the seconds that a writer has are for its model
    return writer


class _LazyQueryWriter:
    """Loads LangChain with the first query: commands that only read or write documents do without it."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._lock = threading.Lock()
        self._loaded: QueryWriter | None = None

    async def write(self, query: str, kind: StrategyName) -> Sequence[str]:
        """As the model writes them."""
        writer = await asyncio.to_thread(self.load) if self._loaded is None else self._loaded
        return await writer.write(query, kind)

    def load(self) -> QueryWriter:
        """The writer, made once; its model is loaded when it is asked."""
        with self._lock:
            if self._loaded is None:
                load = import_module("graphrag_agent.models.factory").load_chat_model
                build = import_module("graphrag_agent.models.query_writing").ChatQueryWriter
                self._loaded = cast(QueryWriter, build(partial(load, self._model)))
            return self._loaded


class LazyKnowledge:
    """A knowledge base that is opened, in a thread, when the first search comes.

    A graph that a server imports must be cheap to import, and must not touch the disk on the server's event loop.
    """

    def __init__(self, open_: Callable[[], KnowledgeBase]) -> None:
        self._open = open_
        self._lock = threading.Lock()
        self._opened: KnowledgeBase | None = None

    async def asearch(
        self, query: str, *, scope: Scope | None = None, top_k: int = 5, **choices: Unpack[SearchChoices]
    ) -> SearchResult:
        """Hits for the query inside the scope, best first."""
        return await (await self._knowledge()).asearch(query, scope=scope, top_k=top_k, **choices)

    async def aclose(self) -> None:
        """Close what was opened."""
        if self._opened is not None:
            await self._opened.aclose()

    async def aread(
        self, document_id: str, *, start: int = 0, end: int | None = None, scope: Scope | None = None
    ) -> str:
        """The document's text from `start` to `end`."""
        return await (await self._knowledge()).aread(document_id, start=start, end=end, scope=scope)

    async def adocuments(self, scope: Scope | None = None) -> list[Document]:
        """By source, without their text."""
        return await (await self._knowledge()).adocuments(scope)

    async def adocument(self, document_id: str, scope: Scope | None = None) -> Document:
        """The document with its text."""
        return await (await self._knowledge()).adocument(document_id, scope)

    async def achunks(self, document_id: str, scope: Scope | None = None) -> list[Chunk]:
        """What the document was cut into, in order."""
        return await (await self._knowledge()).achunks(document_id, scope)

    async def astats(self, scope: Scope | None = None) -> KnowledgeBaseStats:
        """Counts of the scope."""
        return await (await self._knowledge()).astats(scope)

    async def aoriginal(self, document_id: str, *, max_bytes: int, scope: Scope | None = None) -> bytes:
        """The file that the document was made from, unchanged since then."""
        return await (await self._knowledge()).aoriginal(document_id, max_bytes=max_bytes, scope=scope)

    async def _knowledge(self) -> KnowledgeBase:
        return await asyncio.to_thread(self._open_once) if self._opened is None else self._opened

    def _open_once(self) -> KnowledgeBase:
        with self._lock:
            if self._opened is None:
                self._opened = self._open()
            return self._opened
