"""What is taken from a server for a few seconds: counts of a scope, and whose vectors there are."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from graphrag_agent.retrieval.scope import Scope
from graphrag_agent.retrieval.stores.port import StoreCounts, StoreProfile
from graphrag_agent.retrieval.stores.server_address import QdrantServer
from graphrag_agent.retrieval.stores.server_calls import ServerDownError
from graphrag_agent.retrieval.stores.server_collections import ServerCollections
from graphrag_agent.retrieval.stores.server_counts import RecentCounts

ACME, OTHER = Scope("acme"), Scope("other")


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


async def test_a_scope_is_counted_again_after_a_write_of_ours_or_a_few_seconds() -> None:
    clock, calls, asked = Clock(), SimpleNamespace(writes=0), []
    counts = RecentCounts(calls, clock=clock)  # type: ignore[arg-type]  # no more of it is used

    async def count(scope: Scope) -> StoreCounts:
        asked.append(scope.tenant)
        return StoreCounts(1, len(asked), 0)

    async def chunks(scope: Scope) -> int:
        return (await counts.get(scope, count)).chunks

    assert [await chunks(scope) for scope in (ACME, OTHER, ACME, OTHER)] == [1, 2, 1, 2]
    clock.now = 4.9
    assert await chunks(ACME) == 1
    clock.now = 5.1
    assert await chunks(ACME) == 3
    calls.writes += 1
    assert await chunks(ACME) == 4
    assert asked == ["acme", "other", "acme", "acme"]


async def test_a_count_that_a_write_overtakes_is_not_kept() -> None:
    calls, asked = SimpleNamespace(writes=0), []
    counts = RecentCounts(calls, clock=Clock())  # type: ignore[arg-type]

    async def overtaken(scope: Scope) -> StoreCounts:
        asked.append(scope)
        calls.writes += 1
        return StoreCounts(0, 0, 0)

    for _ in range(2):
        await counts.get(ACME, overtaken)
    assert asked == [ACME, ACME]


async def test_a_profile_is_asked_for_again_after_a_few_seconds_and_outlives_a_server_that_is_down() -> None:
    clock = Clock()

    class Calls:
        server_seconds, reads, is_down, embedder = 1, 0, False, "one"

        async def read(self, _: Any) -> list[Any]:
            self.reads += 1
            if self.is_down:
                raise ServerDownError("no route")
            return [SimpleNamespace(payload={"profile": {"embedder": self.embedder, "dimensions": 3}})]

    calls = Calls()
    collections = ServerCollections(calls, QdrantServer("http://127.0.0.1"), clock=clock)  # type: ignore[arg-type]
    assert [await collections.profile() for _ in range(3)] == [StoreProfile("one", 3)] * 3
    calls.embedder, clock.now = "two", 4.9
    assert (await collections.profile(), calls.reads) == (StoreProfile("one", 3), 1)
    clock.now = 5.1
    assert (await collections.profile(), calls.reads) == (StoreProfile("two", 3), 2)
    calls.is_down, clock.now = True, 20.0
    assert await collections.profile() == StoreProfile("two", 3)
    with pytest.raises(ServerDownError):
        await ServerCollections(calls, QdrantServer("http://127.0.0.1"), clock=clock).profile()  # type: ignore[arg-type]
