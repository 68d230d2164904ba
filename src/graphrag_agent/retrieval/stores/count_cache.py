"""Counts that each search asks for, kept until something is written."""

from __future__ import annotations

from collections.abc import Callable

from graphrag_agent.retrieval.scope import Scope
from graphrag_agent.retrieval.stores.port import StoreCounts

_MOST_SCOPES = 256


class CountCache:
    """Thread-safe: a count that began before a write is not kept after it."""

    def __init__(self) -> None:
        self._known: dict[Scope, StoreCounts] = {}

    def forget(self) -> None:
        """To be called after each write, before its caller is told that it is done."""
        self._known = {}

    def counts(self, scope: Scope, count: Callable[[Scope], StoreCounts]) -> StoreCounts:
        """As kept, or as `count` counts."""
        known = self._known  # a write puts another one in its place, and this count is lost with it
        if (kept := known.get(scope)) is not None:
            return kept
        fresh = count(scope)
        if len(known) < _MOST_SCOPES:
            known[scope] = fresh
        return fresh
