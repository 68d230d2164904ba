"""Work in a thread that another thread may end, by killing the process that does it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Job:
    """One piece of work, so that another thread can end it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kill: Callable[[], None] | None = None
        self.stopped = False

    @contextmanager
    def killed_by(self, kill: Callable[[], None]) -> Iterator[None]:
        """While this is open, `stop` calls `kill`; never after it, when the process id may be another's."""
        with self._lock:
            self._kill = kill
            if self.stopped:
                kill()
        try:
            yield
        finally:
            with self._lock:
                self._kill = None

    def stop(self) -> None:
        """End the work now, or as soon as it begins."""
        with self._lock:
            self.stopped = True
            if self._kill is not None:
                self._kill()
