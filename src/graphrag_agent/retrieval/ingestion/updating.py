"""Stored documents brought to what their files say now. `update_documents` is the entry."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from graphrag_agent.documents import Document
from graphrag_agent.errors import KnowledgeBaseError
from graphrag_agent.retrieval.ingestion.pipeline import FailedFile, IngestReport, Progress, ingest
from graphrag_agent.retrieval.ingestion.preparation import IngestTarget, document_id, unfinished
from graphrag_agent.retrieval.scope import Scope
from graphrag_agent.retrieval.stores.port import ChunkStore


@dataclass(frozen=True, slots=True)
class UpdateReport:
    """What one update did."""

    updated: int
    """Documents whose file has changed, written anew."""
    unchanged: int
    failed: tuple[FailedFile, ...] = ()
    """Files that can't be read now; what is stored of them stays."""
    missing: tuple[str, ...] = ()
    """Sources without a file."""
    removed: int = 0
    """Documents deleted because their file is missing."""
    pending: int = 0
    """Chunks of the scope that have no vector yet."""
    embedding_problem: str | None = None
    """Why they have none, where it isn't that nobody has waited."""


async def update_documents(
    store: ChunkStore,
    root: Path,
    scope: Scope,
    document_ids: Iterable[str] | None = None,
    *,
    remove_missing: bool = False,
    progress: Progress | None = None,
) -> UpdateReport:
    """Those of the scope, or of these ids in it, each in the tenant, collection, groups and metadata that it has.

    Raises KnowledgeBaseError for an id that isn't in the scope, and where all files are missing: that is a wrong folder
    more likely than a wish.
    """
    documents = await _chosen(store, scope, document_ids)
    there, gone = await asyncio.to_thread(_sort_out, documents, root)
    if remove_missing and gone and not there:
        raise KnowledgeBaseError(
            f"not one of the {len(gone)} files is found from {str(root)!r}, so nothing was removed: "
            "run it where they were ingested, or delete the documents by id"
        )
    reports = await _ingest(store, there, progress)
    for document in gone if remove_missing else ():
        await remove_document(store, document.id, document)
    return UpdateReport(
        updated=sum(report.documents for report in reports),
        unchanged=sum(report.unchanged for report in reports),
        failed=tuple(failed for report in reports for failed in report.failed),
        missing=tuple(document.source for document in gone),
        removed=len(gone) if remove_missing else 0,
    )


async def remove_document(store: ChunkStore, document_id: str, record: Document | None = None) -> None:
    """With its `record`, where it has one, a kill in between leaves it unfinished, for an update to see."""
    await store.turns.take(lambda: _remove(store, document_id, record))


async def _remove(store: ChunkStore, document_id: str, record: Document | None) -> None:
    if record is not None:
        await store.write_document(unfinished(record))
    else:
        await store.remove_document(document_id)
    await store.flush()
    await store.remove_chunks(await store.chunk_ids(document_id))
    if record is not None:
        await store.flush()
        await store.remove_document(document_id)
    await store.flush()


async def _chosen(store: ChunkStore, scope: Scope, document_ids: Iterable[str] | None) -> list[Document]:
    documents = await store.documents(scope)
    if document_ids is None:
        return documents
    by_id = {document.id: document for document in documents}
    names = list(dict.fromkeys(document_ids))
    unknown = next((name for name in names if name not in by_id), None)
    if unknown is not None:
        raise KnowledgeBaseError(f"no document {unknown!r} in this scope; list them with documents()")
    return [by_id[name] for name in names]


_Group = tuple[IngestTarget, list[Path]]


def _sort_out(documents: Sequence[Document], root: Path) -> tuple[list[_Group], list[Document]]:
    """Files by where they belong, and the documents without a file.

    A file counts only where it is found under the name that it is stored by: a link that now leads elsewhere would be
    another document.
    """
    groups: dict[str, _Group] = {}
    gone = []
    for document in documents:
        target = IngestTarget(root, document.tenant, document.collection, document.groups, document.metadata)
        path = root / document.source
        if not path.is_file() or document_id(path, target) != document.id:
            gone.append(document)
            continue
        place = json.dumps([target.tenant, target.collection, target.groups, dict(target.metadata)], sort_keys=True)
        groups.setdefault(place, (target, []))[1].append(path)
    return list(groups.values()), gone


async def _ingest(store: ChunkStore, groups: Sequence[_Group], progress: Progress | None) -> list[IngestReport]:
    total = sum(len(paths) for _, paths in groups)
    reports = []
    before = 0
    for target, paths in groups:

        def tell(done: int, _: int, name: str, before: int = before) -> None:
            if progress:
                progress(before + done, total, name)

        reports.append(await ingest(store, paths, target, tell))
        before += len(paths)
    return reports
