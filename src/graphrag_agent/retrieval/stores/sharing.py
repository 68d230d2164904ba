"""One store a folder and process, however often it is opened: a notebook cell that is run again must not fail."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol
from weakref import WeakSet, WeakValueDictionary

from graphrag_agent.errors import KnowledgeBaseError

LOCK_NAME = "lock"
"""The file in a folder whose lock keeps other processes out."""


class Closable(Protocol):
    """A store that can be closed from any thread."""

    def close(self) -> None: ...


class StoreLease:
    """One opener's share of a store: all its methods, until this lease is closed. The last one closes the store."""

    def __init__(self, shared: _SharedStore) -> None:
        self._shared: _SharedStore | None = shared
        shared.leases.add(self)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if self._shared is None:
            raise KnowledgeBaseError("the knowledge base is closed: open it again")
        return getattr(self._shared.store, name)

    async def aclose(self) -> None:
        """Give the share back; a second call does nothing."""
        await asyncio.to_thread(self._release)

    def _release(self) -> None:
        with _lock:
            shared, self._shared = self._shared, None
            if shared is not None:
                shared.leases.discard(self)
                if not shared.leases:
                    _open.pop(shared.key, None)
                    shared.store.close()  # under the lock, so that an opener meets a folder that is free


class _SharedStore:
    def __init__(self, key: tuple[int, ...], store: Closable) -> None:
        self.key = key
        self.store = store
        self.leases: WeakSet[StoreLease] = WeakSet()
        """Weak: a lease that was dropped without being closed must not keep the folder."""


_lock = threading.Lock()
_open: WeakValueDictionary[tuple[int, ...], _SharedStore] = WeakValueDictionary()


def share_store(folder: Path, build: Callable[[Path], Closable]) -> StoreLease:
    """A lease of the folder's store in this process, which is built where there is none."""
    with _lock:
        key = _key(folder)
        shared = _open.get(key)
        if shared is None:
            shared = _SharedStore(key, build(folder))
            _open[key] = shared
        return StoreLease(shared)


def _key(folder: Path) -> tuple[int, ...]:
    """The lock file's own number: the same by any path, another one where the folder was removed and made again.

    With the process's, because a fork inherits the table but must not use its parent's engine.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lock_file = folder / LOCK_NAME
    lock_file.touch()
    found = lock_file.stat()
    return os.getpid(), found.st_dev, found.st_ino
