"""The file that a document was made from, as it was when it was ingested."""

from __future__ import annotations

import hashlib
from pathlib import Path

from graphrag_agent.documents import Document
from graphrag_agent.errors import KnowledgeBaseError
from graphrag_agent.retrieval.ingestion.preparation import IngestTarget, content_hash, document_id


def read_original(document: Document, root: Path, *, max_bytes: int) -> bytes:
    """The file's bytes, proved by the stored hash to be those that were ingested.

    Raises KnowledgeBaseError where the file is gone, not ours to read, larger than `max_bytes`, or another one by now.
    """
    target = IngestTarget(root, document.tenant, document.collection, document.groups, document.metadata)
    path = root / document.source
    try:
        # a link that now leads elsewhere would be another document
        if not path.is_file() or document_id(path, target) != document.id:
            raise KnowledgeBaseError(
                f"the file {document.source!r} is not where it was ingested; put it back, or run graphrag-agent update"
            )
        with path.open("rb") as file:
            data = file.read(max_bytes + 1)
    except OSError as error:
        raise KnowledgeBaseError(f"the file {document.source!r} can't be read ({error.strerror})") from error
    if len(data) > max_bytes:
        raise KnowledgeBaseError(
            f"the file {document.source!r} is larger than {max_bytes // 1_000_000} MB; split it into smaller files"
        )
    if content_hash(hashlib.sha256(data).hexdigest(), target) != document.content_hash:
        raise KnowledgeBaseError(
            f"the file {document.source!r} has changed since it was ingested; run graphrag-agent update"
        )
    return data
