"""Whether a folder is a knowledge base's own, told without opening it: any folder could pass for one otherwise."""

from __future__ import annotations

from pathlib import Path

from graphrag_agent.errors import KnowledgeBaseError

CHUNKS, DOCUMENTS = "chunks", "documents"
"""The embedded store's shards in its folder."""
PROFILE_NAME = "profile.json"


def is_shard(folder: Path) -> bool:
    """Whether the engine keeps its data there."""
    return (folder / "edge_config.json").is_file() and (folder / "segments").is_dir()


def holds_store(folder: Path) -> bool:
    """Whether there is a knowledge base, be it an empty one."""
    return is_shard(folder / CHUNKS)


def refuse_foreign(folder: Path) -> None:
    """Raises KnowledgeBaseError where something else has the name of a shard: the engine would write into it."""
    for shard in (folder / CHUNKS, folder / DOCUMENTS):
        if shard.exists() and not is_shard(shard):
            raise KnowledgeBaseError(
                f"{str(shard)!r} is there and is no part of a knowledge base: "
                f"keep the knowledge base in another folder, for example {str(folder / '.graphrag')!r}"
            )
