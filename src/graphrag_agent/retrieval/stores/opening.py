"""Which store serves a location. Its module, and with it its engine, is imported only when it is chosen."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import cast

from graphrag_agent.errors import MissingExtraError, SettingsError
from graphrag_agent.retrieval.stores.own_folder import refuse_foreign
from graphrag_agent.retrieval.stores.port import ChunkStore
from graphrag_agent.retrieval.stores.server_address import QdrantServer, is_server
from graphrag_agent.retrieval.stores.sharing import share_store

MEMORY = ":memory:"
Location = str | Path | QdrantServer
"""":memory:", the URL of a Qdrant server or the same with its options, or a folder."""
_PACKAGE = "graphrag_agent.retrieval.stores"


def has_folder(location: Location) -> bool:
    """Whether a knowledge base there is kept in a folder of this machine."""
    return not (isinstance(location, QdrantServer) or str(location) == MEMORY or is_server(location))


def open_store(location: Location) -> ChunkStore:
    """The store at ":memory:", on a server, or in a folder, which is made if need be and shared within the process.

    A server is not asked yet. Raises KnowledgeBaseError for a folder in which the store would write into other files.
    """
    if not has_folder(location):
        if str(location) == MEMORY:
            return cast(ChunkStore, import_module(f"{_PACKAGE}.memory").MemoryStore())
        server = location if isinstance(location, QdrantServer) else QdrantServer(str(location))
        return cast(ChunkStore, import_module(f"{_PACKAGE}.server").ServerStore(server))
    folder = checked_folder(location)
    if find_spec("qdrant_edge") is None or find_spec("portalocker") is None:
        raise MissingExtraError(f"a knowledge base in a folder ({str(folder)!r})", "local")
    refuse_foreign(folder)  # here too: to share a folder is to write a lock file into it
    return cast(ChunkStore, share_store(folder, import_module(f"{_PACKAGE}.edge").EdgeStore))


def checked_folder(location: Location) -> Path:
    """The folder, absolute. Raises SettingsError for what can't be one."""
    text = str(location)
    if not text.strip():
        raise SettingsError(f"knowledge base {text!r}: give a folder, {MEMORY!r} or http://...")
    folder = Path(text).expanduser().absolute()
    if folder.exists() and not folder.is_dir():
        raise SettingsError(f"knowledge base {text!r} is a file: give a folder")
    return folder
