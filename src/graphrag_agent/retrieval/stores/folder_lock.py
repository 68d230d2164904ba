"""One process at a time in a store's folder."""

from __future__ import annotations

import os
from pathlib import Path

import portalocker

from graphrag_agent.errors import StoreLockedError
from graphrag_agent.retrieval.stores.sharing import LOCK_NAME


class FolderLock:
    """Held from creation to `release`, or to the end of the process. Raises StoreLockedError where it is taken."""

    def __init__(self, folder: Path) -> None:
        path = folder / LOCK_NAME
        self._file = path.open("a+", encoding="utf-8")
        try:
            portalocker.lock(self._file, portalocker.LockFlags.EXCLUSIVE | portalocker.LockFlags.NON_BLOCKING)
        except portalocker.exceptions.BaseLockException:
            self._file.seek(0)
            owner = self._file.read().strip()
            self._file.close()
            who = "this process" if owner == str(os.getpid()) else f"process {owner or 'unknown'}"
            raise StoreLockedError(
                f"the knowledge base {str(folder)!r} is open in {who}: close it there, or use another folder"
            ) from None
        self._file.truncate(0)
        self._file.write(str(os.getpid()))
        self._file.flush()

    def release(self) -> None:
        """Let the next one in."""
        self._file.close()

    def __del__(self) -> None:
        if hasattr(self, "_file"):  # a store that was dropped without being closed must not keep the folder
            self._file.close()
