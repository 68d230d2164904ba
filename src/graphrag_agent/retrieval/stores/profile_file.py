"""The store's profile: what it forbids, and its small file beside the shards, readable without opening them."""

from __future__ import annotations

import json
from pathlib import Path

from graphrag_agent.errors import EmbedderMismatchError, KnowledgeBaseError
from graphrag_agent.retrieval.stores.own_folder import PROFILE_NAME
from graphrag_agent.retrieval.stores.port import StoreProfile


def require_profile(stored: StoreProfile | None, embedder: str) -> None:
    """Raises EmbedderMismatchError unless the stored vectors are this embedder's."""
    if stored is None or stored.embedder != embedder:
        made = f"were made with {stored.embedder!r}" if stored else "were dropped meanwhile"
        raise EmbedderMismatchError(f"the stored vectors {made}; none of {embedder!r} can be added to them")


def refuse_other_embedder(stored: StoreProfile | None, given: str | None, *, writing: bool) -> None:
    """Raises EmbedderMismatchError. Without an embedder reading is allowed, by words alone."""
    if stored is None or given == stored.embedder or not (given or writing):
        return
    raise EmbedderMismatchError(
        f"the vectors were made with {stored.embedder!r} but the embedder is {repr(given) if given else 'none'}: "
        "open the knowledge base with the first, make all vectors anew (graphrag-agent reembed, or reembed=True), "
        "or ingest into a new folder"
    )


def load_profile(folder: Path) -> StoreProfile | None:
    """None where no vector was written yet. Raises KnowledgeBaseError for a file that says something else."""
    path = folder / PROFILE_NAME
    if not path.exists():
        return None
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
        return StoreProfile(embedder=str(fields["embedder"]), dimensions=int(fields["dimensions"]))
    except (ValueError, KeyError, TypeError) as error:
        raise KnowledgeBaseError(
            f"{str(path)!r} is no profile of a knowledge base: move it away, or use another folder"
        ) from error


def save_profile(folder: Path, profile: StoreProfile) -> None:
    """All or nothing: a kill leaves the old file or the new one."""
    fresh = folder / f"{PROFILE_NAME}.new"
    fresh.write_text(json.dumps(profile._asdict()), encoding="utf-8")
    fresh.replace(folder / PROFILE_NAME)


def remove_profile(folder: Path) -> None:
    """As if no vector had been written; none there is fine."""
    (folder / PROFILE_NAME).unlink(missing_ok=True)
