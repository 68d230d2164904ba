"""Counts that each search asks for, kept until something is written."""

from __future__ import annotations

from collections.abc import Callable

from graphrag_agent.retrieval.scope import Scope
from graphrag_agent.retrieval.stores.port import StoreCounts

_MOST_SCOPES = 256


class CountCache:
    """Thread-safe: a count that began before a write is not kept after it."""

    def __init__(self) -> None:
        self._writes = 0
        self._known: dict[Scope, StoreCounts] = {}

    def forget(self) -> None:
        """To be called after each write, before its caller is told that it is done."""
        self._writes += 1
        self._known = {}

    def counts(self, scope: Scope, count: Callable[[Scope], StoreCounts]) -> StoreCounts:
        """As kept, or as `count` counts."""
        writes, known = self._writes, self._known
        if (kept := known.get(scope)) is not None:
            return kept
        fresh = count(scope)
        if writes == self._writes and len(known) < _MOST_SCOPES:
            known[scope] = fresh
        return fresh
