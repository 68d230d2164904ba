"""One file as a document and its chunks, with ids that stay the same as long as place and words do."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from graphrag_agent.documents import Chunk, Document
from graphrag_agent.errors import ParseError
from graphrag_agent.retrieval.ingestion.chunking import split_document
from graphrag_agent.retrieval.ingestion.parsing import ParsedDocument, parse_file

INGEST_VERSION = 2
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
    chunks: list[Chunk]


def source_of(path: Path, root: Path) -> str:
    """How the file is called in the knowledge base: relative to `root`, absolute outside it."""
    absolute = path.resolve()
    return absolute.relative_to(root).as_posix() if absolute.is_relative_to(root) else absolute.as_posix()


def document_id(path: Path, target: IngestTarget) -> str:
    """The same for the same place, whatever the file says."""
    place = [target.tenant, target.collection, source_of(path, target.root)]
    return hashlib.sha256(json.dumps(place).encode()).hexdigest()[:32]


def content_hash(path: Path, target: IngestTarget) -> str:
    """Changes with all that decides what is stored for the file, except the embedder: vectors are filled apart."""
    made_with = [INGEST_VERSION, target.collection, sorted(target.groups), dict(target.metadata)]
    digest = hashlib.sha256(json.dumps(made_with, sort_keys=True).encode())
    if path.is_file():  # what is no file is refused by the parser
        digest.update(path.read_bytes())
    return digest.hexdigest()


def prepare_document(path: Path, target: IngestTarget, stored_hash: str) -> PreparedDocument:
    """The file, parsed and cut. Raises ParseError that says what is wrong with it."""
    parsed = parse_file(path)
    document = Document(
        id=document_id(path, target),
        tenant=target.tenant,
        collection=target.collection,
        source=source_of(path, target.root),
        title=parsed.title,
        source_type=parsed.source_type,
        text=parsed.text,
        content_hash=stored_hash,
        groups=target.groups,
        metadata=dict(target.metadata),
    )
    chunks = _cut(document, parsed)
    if not chunks:
        raise ParseError(f"{path}: holds no text to search; add some or leave it out")
    return PreparedDocument(path, replace(document, chunk_count=len(chunks)), chunks)


def _cut(document: Document, parsed: ParsedDocument) -> list[Chunk]:
    seen: Counter[str] = Counter()
    chunks = []
    for position, passage in enumerate(split_document(parsed)):
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
            text=passage.text,
            start=passage.start,
            end=passage.end,
        )
        occurrence = seen[chunk.index_text]
        seen[chunk.index_text] += 1
        name = json.dumps([document.id, chunk.index_text, occurrence])
        chunks.append(replace(chunk, id=str(uuid.uuid5(_ID_NAMESPACE, name))))
    return chunks
