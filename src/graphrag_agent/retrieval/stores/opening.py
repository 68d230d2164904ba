"""Which store serves a location. Its module, and with it its engine, is imported only when it is chosen."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import cast

from graphrag_agent.errors import MissingExtraError, SettingsError
from graphrag_agent.retrieval.stores.port import ChunkStore
from graphrag_agent.retrieval.stores.sharing import share_store

MEMORY = ":memory:"
_PACKAGE = "graphrag_agent.retrieval.stores"


def open_store(location: str | Path) -> ChunkStore:
    """The store at ":memory:" or in a folder, which is made if need be and shared within the process."""
    if str(location) == MEMORY:
        return cast(ChunkStore, import_module(f"{_PACKAGE}.memory").MemoryStore())
    folder = checked_folder(location)
    if find_spec("qdrant_edge") is None or find_spec("portalocker") is None:
        raise MissingExtraError(f"a knowledge base in a folder ({str(folder)!r})", "local")
    return cast(ChunkStore, share_store(folder, import_module(f"{_PACKAGE}.edge").EdgeStore))


def checked_folder(location: str | Path) -> Path:
    """The folder, absolute. Raises SettingsError for what can't be one."""
    text = str(location)
    if not text.strip():
        raise SettingsError(f"knowledge base {text!r}: give a folder or {MEMORY!r}")
    if text.startswith(("http://", "https://")):
        raise SettingsError(f"knowledge base {text!r}: the Qdrant server backend is not there yet; give a folder")
    folder = Path(text).expanduser().absolute()
    if folder.exists() and not folder.is_dir():
        raise SettingsError(f"knowledge base {text!r} is a file: give a folder")
    return folder
