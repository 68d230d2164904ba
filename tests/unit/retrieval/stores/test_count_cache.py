from __future__ import annotations

from graphrag_agent.retrieval.scope import Scope
from graphrag_agent.retrieval.stores.count_cache import CountCache
from graphrag_agent.retrieval.stores.port import StoreCounts

ACME, OTHER = Scope("acme"), Scope("other")


def test_a_scope_is_counted_once_until_something_is_written() -> None:
    cache, asked = CountCache(), []

    def count(scope: Scope) -> StoreCounts:
        asked.append(scope.tenant)
        return StoreCounts(1, len(asked), 0)

    assert [cache.counts(scope, count).chunks for scope in (ACME, OTHER, ACME, OTHER)] == [1, 2, 1, 2]
    cache.forget()
    assert cache.counts(ACME, count).chunks == 3
    assert asked == ["acme", "other", "acme"]


def test_a_count_that_a_write_overtakes_is_not_kept() -> None:
    cache = CountCache()

    def overtaken(scope: Scope) -> StoreCounts:
        cache.forget()
        return StoreCounts(0, 0, 0)

    assert cache.counts(ACME, overtaken) == StoreCounts(0, 0, 0)
    assert cache.counts(ACME, lambda scope: StoreCounts(1, 1, 1)) == StoreCounts(1, 1, 1)
