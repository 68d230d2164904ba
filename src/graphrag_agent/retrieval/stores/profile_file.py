"""The store's profile as a small file beside the shards, readable without opening them."""

from __future__ import annotations

import json
from pathlib import Path

from graphrag_agent.errors import KnowledgeBaseError
from graphrag_agent.retrieval.stores.port import StoreProfile

_NAME = "profile.json"


def load_profile(folder: Path) -> StoreProfile | None:
    """None where no vector was written yet. Raises KnowledgeBaseError for a file that says something else."""
    path = folder / _NAME
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
    fresh = folder / f"{_NAME}.new"
    fresh.write_text(json.dumps(profile._asdict()), encoding="utf-8")
    fresh.replace(folder / _NAME)
