"""Which files an ingest means."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from graphrag_agent.errors import SettingsError
from graphrag_agent.retrieval.ingestion.parsing.registry import SUPPORTED_SUFFIXES
from graphrag_agent.retrieval.stores.own_folder import PROFILE_NAME, holds_store, is_shard


def find_files(paths: Iterable[str | Path]) -> list[Path]:
    """The named files, and those with a supported suffix below the named folders; sorted, each once.

    Inside folders hidden files and folders, and those that a knowledge base keeps its data in, are skipped and links to
    folders are not followed. A file that is named itself is kept whatever its suffix, so that its failure is reported.
    Raises SettingsError for a path that doesn't exist or a folder that can't be listed.
    """
    if isinstance(paths, (str, Path)):
        paths = [paths]
    found: dict[Path, Path] = {}
    for given in paths:
        path = Path(given)
        if not str(given) or not path.exists():  # Path("") is the current folder, which nobody meant
            raise SettingsError(f"{given or repr('')}: no such file or folder; check the path")
        for file in _files_below(path) if path.is_dir() else [path]:
            found.setdefault(file.resolve(), file)
    return sorted(found.values())


def _files_below(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder, onerror=_refuse):
        if _is_store_data(Path(parent)):
            folders.clear()
            continue
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(parent, name)
            is_text = not name.startswith(".") and path.suffix.lower() in SUPPORTED_SUFFIXES
            if is_text and not _is_store_data(path):
                yield path


def _is_store_data(path: Path) -> bool:
    """Its own parts only: somebody's documents may lie beside them, as with the knowledge base `.`."""
    with suppress(OSError):  # what can't be looked at is reported when it is listed or read
        return holds_store(path.parent) if path.name == PROFILE_NAME else is_shard(path)
    return False


def _refuse(error: OSError) -> None:
    raise SettingsError(f"{error.filename}: can't be listed ({error.strerror}); check its permissions") from error
