"""Chunks and documents as the JSON-like payload of a Qdrant point, and back."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from graphrag_agent.documents import Chunk, Document
from graphrag_agent.retrieval.scope import EVERYONE, stored_access

ACCESS_FIELDS = ("tenant", "groups", "collection", "document_id", "source_type")
"""Payload fields that scopes are matched against; each gets a keyword index."""
TEXT_HASH = "text_hash"
"""Payload field of chunks with the hash of what is embedded; gets a keyword index too."""
BODY = "body"
"""Payload field with everything else."""
RESERVED_KEYS = frozenset({*ACCESS_FIELDS, TEXT_HASH, BODY, "source", "title", "content_hash"})
"""Names that a document's own metadata may not use."""


def text_hash(chunk: Chunk) -> str:
    """Equal for chunks that get equal vectors: of one embedder, and of the text under its headings."""
    return hashlib.sha256(chunk.index_text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def chunk_payload(chunk: Chunk) -> dict[str, Any]:
    """Access fields and the text's hash on top, the chunk's own fields under `BODY`."""
    stored = _payload(chunk, drop=("document_id", "tenant", "collection", "groups", "source_type"))
    return {**stored, TEXT_HASH: text_hash(chunk)}


def parse_chunk(payload: Mapping[str, Any]) -> Chunk:
    """The chunk that `chunk_payload` was given."""
    return Chunk(**payload[BODY], **_access(payload), document_id=payload["document_id"])


def document_payload(document: Document) -> dict[str, Any]:
    """Access fields on top, the document's own fields under `BODY`."""
    return _payload(document, drop=("tenant", "collection", "groups", "source_type"))


def parse_document(payload: Mapping[str, Any]) -> Document:
    """The document that `document_payload` was given; without text where the payload was read without it."""
    return Document(**{"text": "", **payload[BODY]}, **_access(payload))


def parse_documents(payloads: Iterable[Mapping[str, Any]]) -> list[Document]:
    """The documents by source; of many it takes long enough to hold up an event loop."""
    return sorted(map(parse_document, payloads), key=lambda item: (item.source, item.id))


def _payload(item: Chunk | Document, *, drop: tuple[str, ...]) -> dict[str, Any]:
    # not asdict, which copies all that the item holds and takes half of an ingest's time
    body = {field.name: getattr(item, field.name) for field in fields(item) if field.name not in drop}
    access = {name: list(values) if name == "groups" else values[0] for name, values in stored_access(item).items()}
    return {**access, BODY: body}


def _access(payload: Mapping[str, Any]) -> dict[str, Any]:
    groups = tuple(payload["groups"])
    return {
        "tenant": payload["tenant"],
        "collection": payload["collection"],
        "source_type": payload["source_type"],
        "groups": () if groups == (EVERYONE,) else groups,
    }
