"""Counts of a scope, kept for a few seconds: every search asks for them, and exact ones cost the server a scan."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

from graphrag_agent.retrieval.scope import Scope
from graphrag_agent.retrieval.stores.port import StoreCounts
from graphrag_agent.retrieval.stores.server_calls import ServerCalls

_KEPT_SECONDS = 5.0
"""As long another process's writes may go uncounted; our own count at once."""
_MAX_SCOPES = 256


class RecentCounts:
    """Each scope's own counts, until a write of this process or for a few seconds."""

    def __init__(self, calls: ServerCalls, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._calls, self._clock = calls, clock
        self._kept: dict[Scope, tuple[int, float, StoreCounts]] = {}

    async def get(self, scope: Scope, count: Callable[[Scope], Awaitable[StoreCounts]]) -> StoreCounts:
        """What is kept, else what `count` says."""
        writes = self._calls.writes
        kept_at, until, counts = self._kept.get(scope, (-1, 0.0, None))
        if counts is not None and kept_at == writes and self._clock() < until:
            return counts
        counts = await count(scope)
        if len(self._kept) >= _MAX_SCOPES:
            self._kept.clear()
        self._kept[scope] = writes, self._clock() + _KEPT_SECONDS, counts
        return counts
