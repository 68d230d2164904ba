"""Points on a Qdrant server: read in pages and in parts, written in parts. What is not there reads as nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

from qdrant_client import models

from graphrag_agent.retrieval.scope import Scope
from graphrag_agent.retrieval.stores.server_calls import RefusedRequestError, ServerCalls

T = TypeVar("T")
_PAGE = 1000
_POINTS_A_WRITE = 256
"""Some 4 MB with vectors of 384 numbers, 18 MB with 3072; a server takes 32 MB."""
_NOT_FOUND = 404


class ServerPoints:
    """The points of one collection."""

    def __init__(self, calls: ServerCalls, collection: str, ordering: models.WriteOrdering) -> None:
        self._calls, self._collection, self._ordering = calls, collection, ordering

    async def query(self, **request: Any) -> list[models.ScoredPoint]:
        """Best first; the request is that of the client's `query_points`."""
        reply = await self._read("query_points", **request)
        return reply.points if reply else []

    async def retrieve(self, ids: Sequence[str], *, fields: Any, vectors: Any = False) -> list[models.Record]:
        """Those of the points that there are, in no order."""
        found: list[models.Record] = []
        for part in _parts(ids, _PAGE):
            found += await self._read("retrieve", ids=part, with_payload=fields, with_vectors=vectors) or []
        return found

    async def first(self, chosen: models.Filter, limit: int) -> list[models.Record]:
        """Some of the chosen points, the same ones as long as nothing changes."""
        reply = await self._read("scroll", scroll_filter=chosen, limit=limit, with_payload=True)
        return reply[0] if reply else []

    async def scroll(
        self, chosen: models.Filter, *, fields: Any = True, vectors: Any = False
    ) -> AsyncIterator[models.Record]:
        """All chosen points."""
        offset: Any = None
        while True:
            reply = await self._read(
                "scroll",
                scroll_filter=chosen,
                limit=_PAGE,
                offset=offset,
                with_payload=fields,
                with_vectors=vectors,
            )
            records, offset = reply or ([], None)
            for record in records:
                yield record
            if offset is None:
                return

    async def count(self, chosen: models.Filter) -> int:
        """How many points there are of the chosen."""
        reply = await self._read("count", count_filter=chosen, exact=True)
        return int(reply.count) if reply else 0

    async def upsert(self, points: Sequence[models.PointStruct]) -> None:
        """Insert, or replace as a whole."""
        for part in _parts(points, _POINTS_A_WRITE):
            await self._write("upsert", points=part)

    async def update_vectors(self, points: Sequence[models.PointVectors]) -> None:
        """Of points that are there; the server refuses unknown ones."""
        for part in _parts(points, _POINTS_A_WRITE):
            await self._write("update_vectors", points=part)

    async def delete(self, ids: Sequence[str]) -> None:
        """Unknown ids are ignored."""
        for part in _parts(ids, _PAGE):
            try:
                await self._write("delete", points_selector=models.PointIdsList(points=list(part)))
            except RefusedRequestError as error:
                if error.status != _NOT_FOUND:  # nothing was ever written
                    raise

    async def _read(self, operation: str, **request: Any) -> Any:
        return await self._calls.read(partial(_ask, operation, self._collection, timeout=self._seconds, **request))

    async def _write(self, operation: str, **request: Any) -> None:
        await self._calls.write(partial(_ask, operation, self._collection, ordering=self._ordering, **request))

    @property
    def _seconds(self) -> int:
        return self._calls.server_seconds


def scope_filter(scope: Scope, *, without: models.Condition | None = None) -> models.Filter:
    """What lies in the scope, and does not meet the condition."""
    must: list[models.Condition] = [match(name, sorted(values)) for name, values in scope.conditions().items()]
    return models.Filter(must=must, must_not=None if without is None else [without])


def match(field: str, values: Sequence[str]) -> models.FieldCondition:
    """Points whose field has one of the values."""
    return models.FieldCondition(key=field, match=models.MatchAny(any=list(values)))


async def _ask(operation: str, collection: str, client: Any, **request: Any) -> Any:
    return await getattr(client, operation)(collection, **request)


def _parts(items: Sequence[T], size: int) -> Iterator[list[T]]:
    return (list(items[at : at + size]) for at in range(0, len(items), size))
