"""Stops asking a server that keeps failing. The clock is an argument, so a test need not wait."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from graphrag_agent.errors import KnowledgeBaseError


class CircuitBreaker:
    """After some failures in a row nobody is asked for a while; then one call tries whether the server is back."""

    def __init__(
        self, *, failures: int = 3, rest_seconds: float = 30.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._allowed, self._rest_seconds, self._clock = failures, rest_seconds, clock
        self._failed = 0
        self._closed_until = 0.0

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Around a call: counts how it ends. Raises KnowledgeBaseError instead of making it while it should rest."""
        if self._failed >= self._allowed:
            if (left := self._closed_until - self._clock()) > 0:
                raise KnowledgeBaseError(f"not asked for another {left:.0f} s after {self._failed} failures in a row")
            self._rest()  # for the others, while this call tries
        try:
            yield
        except Exception:
            self._failed += 1
            self._rest()
            raise
        self._failed = 0

    def _rest(self) -> None:
        self._closed_until = self._clock() + self._rest_seconds
