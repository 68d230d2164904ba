"""Chunks and documents as the JSON-like payload of a Qdrant point, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from graphrag_agent.documents import Chunk, Document
from graphrag_agent.retrieval.scope import EVERYONE, stored_access

INDEXED_FIELDS = ("tenant", "groups", "collection", "document_id", "source_type")
"""Payload fields that scopes are matched against; each gets a keyword index."""
BODY = "body"
"""Payload field with everything else."""
RESERVED_KEYS = frozenset({*INDEXED_FIELDS, BODY, "source", "title", "content_hash"})
"""Names that a document's own metadata may not use."""


def chunk_payload(chunk: Chunk) -> dict[str, Any]:
    """Access fields on top, the chunk's own fields under `BODY`."""
    return _payload(chunk, drop=("document_id", "tenant", "collection", "groups", "source_type"))


def parse_chunk(payload: Mapping[str, Any]) -> Chunk:
    """The chunk that `chunk_payload` was given."""
    return Chunk(**payload[BODY], **_access(payload), document_id=payload["document_id"])


def document_payload(document: Document) -> dict[str, Any]:
    """Access fields on top, the document's own fields under `BODY`."""
    return _payload(document, drop=("tenant", "collection", "groups", "source_type"))


def parse_document(payload: Mapping[str, Any]) -> Document:
    """The document that `document_payload` was given; without text where the payload was read without it."""
    return Document(**{"text": "", **payload[BODY]}, **_access(payload))


def _payload(item: Chunk | Document, *, drop: tuple[str, ...]) -> dict[str, Any]:
    body = {name: value for name, value in asdict(item).items() if name not in drop}
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
