"""One file as a document and its chunks, with ids that stay the same as long as place and words do."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from graphrag_agent.documents import Chunk, Document
from graphrag_agent.errors import ParseError
from graphrag_agent.retrieval.ingestion.workers.team import ReadFile
from graphrag_agent.retrieval.scope import is_storable
from graphrag_agent.retrieval.stores.port import ChunkRecord

INGEST_VERSION = 8
"""Raise it when parsing, chunking or tokenizing changes what is stored: every document is then written anew."""
_ID_NAMESPACE = uuid.UUID("0b7c1c9e-6f0e-4c53-9a39-3f5e6b0f0d52")


@dataclass(frozen=True, slots=True)
class IngestTarget:
    """Where the documents of one ingest belong."""

    root: Path
    """Resolved; sources are named relative to this folder where they lie below it."""
    tenant: str
    collection: str
    groups: tuple[str, ...] = ()
    metadata: Mapping[str, object] = field(default_factory=dict)


class PreparedDocument(NamedTuple):
    """A document that is ready to be written."""

    path: Path
    document: Document
    records: list[ChunkRecord]


def source_of(path: Path, root: Path) -> str:
    """How the file is called in the knowledge base: relative to `root`, absolute outside it."""
    absolute = path.resolve()
    return absolute.relative_to(root).as_posix() if absolute.is_relative_to(root) else absolute.as_posix()


def document_id(path: Path, target: IngestTarget) -> str:
    """The same for the same place, whatever the file says."""
    place = [target.tenant, target.collection, source_of(path, target.root)]
    return hashlib.sha256(json.dumps(place).encode()).hexdigest()[:32]


def hash_file(path: Path) -> str:
    """SHA-256 of its bytes; of none where it is no file, which the parser refuses."""
    if not path.is_file():
        return hashlib.sha256().hexdigest()
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def content_hash(file_hash: str, target: IngestTarget) -> str:
    """Changes with all that decides what is stored for the file, except the embedder: vectors are filled apart."""
    made_with = [INGEST_VERSION, target.collection, sorted(target.groups), dict(target.metadata), file_hash]
    return hashlib.sha256(json.dumps(made_with, sort_keys=True).encode()).hexdigest()


def make_document(path: Path, target: IngestTarget, found: ReadFile) -> PreparedDocument:
    """The document and its chunks. Raises ParseError for one without text or with a name that no store can hold."""
    answer, source = found.answer, source_of(path, target.root)
    if not is_storable(source):
        raise ParseError(f"{path}: its name or its folder's isn't UTF-8; rename it")
    document = Document(
        id=document_id(path, target),
        tenant=target.tenant,
        collection=target.collection,
        source=source,
        title=answer.title,
        source_type=answer.source_type,
        text=answer.text,
        content_hash=content_hash(found.file_hash, target),
        groups=target.groups,
        metadata=dict(target.metadata),
        chunk_count=len(answer.passages),
    )
    records = list(_records(document, found))
    if not records:
        raise ParseError(f"{path}: holds no text to search; add some or leave it out")
    return PreparedDocument(path, document, records)


def unfinished(document: Document) -> Document:
    """Its record while its chunks change: no file has this hash, so the next ingest or update does it again."""
    return replace(document, content_hash="")


def _records(document: Document, found: ReadFile) -> Iterator[ChunkRecord]:
    seen: Counter[str] = Counter()
    for position, passage in enumerate(found.answer.passages):
        chunk = Chunk(
            id="",
            document_id=document.id,
            tenant=document.tenant,
            collection=document.collection,
            groups=document.groups,
            source=document.source,
            source_type=document.source_type,
            title=document.title,
            heading=passage.heading,
            page=passage.page,
            position=position,
            text=document.text[passage.start : passage.end],
            start=passage.start,
            end=passage.end,
        )
        text = chunk.index_text
        name = json.dumps([document.id, text, seen[text]])
        seen[text] += 1
        yield ChunkRecord(replace(chunk, id=str(uuid.uuid5(_ID_NAMESPACE, name))), passage.terms, None)
