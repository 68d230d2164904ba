"""Which files an ingest means."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from graphrag_agent.errors import SettingsError
from graphrag_agent.retrieval.ingestion.parsing.registry import SUPPORTED_SUFFIXES


def find_files(paths: Iterable[str | Path]) -> list[Path]:
    """The named files, and those with a supported suffix below the named folders; sorted, each once.

    Inside folders hidden files and folders are skipped and links to folders are not followed. A file that is named
    itself is kept whatever its suffix, so that its failure is reported. Raises SettingsError for a path that doesn't
    exist or a folder that can't be listed.
    """
    if isinstance(paths, (str, Path)):
        paths = [paths]
    found: dict[Path, Path] = {}
    for path in map(Path, paths):
        if not path.exists():
            raise SettingsError(f"{path}: no such file or folder; check the path")
        for file in _files_below(path) if path.is_dir() else [path]:
            found.setdefault(file.resolve(), file)
    return sorted(found.values())


def _files_below(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder, onerror=_refuse):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if not name.startswith(".") and Path(name).suffix.lower() in SUPPORTED_SUFFIXES:
                yield Path(parent, name)


def _refuse(error: OSError) -> None:
    raise SettingsError(f"{error.filename}: can't be listed ({error.strerror}); check its permissions") from error
