"""Closing while requests are under way: nothing stays open, and who waits is told."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from graphrag_agent.retrieval.stores import server_calls
from graphrag_agent.retrieval.stores.server_address import QdrantServer
from graphrag_agent.retrieval.stores.server_calls import RefusedRequestError, ServerCalls
from tests.waiting import until_here


class Client:
    """Stands for Qdrant's; each takes a while to be made, as the real one does."""

    made: list[Client]
    seconds = 0.0

    def __init__(self, **options: Any) -> None:
        time.sleep(self.seconds)
        self.is_closed = False
        self.used_after_the_end = False
        self.made.append(self)

    async def info(self) -> Any:
        return type("Info", (), {"version": "1.19.0"})

    async def close(self) -> None:
        self.is_closed = True


class SlowRequest:
    """Waits for a reply; a connection that is being made ends in its own time, whoever gives up."""

    def __init__(self) -> None:
        self.began, self.ended = threading.Event(), threading.Event()

    async def __call__(self, client: Any) -> None:
        self.began.set()
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.05)
            client.used_after_the_end = client.is_closed
            self.ended.set()


@pytest.fixture
def calls() -> ServerCalls:
    return ServerCalls(QdrantServer("http://127.0.0.1:1", timeout_seconds=60))


@pytest.fixture(autouse=True)
def clients(monkeypatch: pytest.MonkeyPatch) -> list[Client]:
    monkeypatch.setattr(Client, "made", [], raising=False)
    monkeypatch.setattr(server_calls, "AsyncQdrantClient", Client)
    return Client.made


async def test_a_request_that_is_under_way_ends_before_its_client_and_says_why(
    calls: ServerCalls, clients: list[Client]
) -> None:
    request = SlowRequest()
    asking = asyncio.create_task(calls.read(request))
    await until_here(request.began.is_set)
    start = time.monotonic()
    await calls.aclose()
    with pytest.raises(RefusedRequestError, match="the knowledge base is closed"):
        await asking
    assert time.monotonic() - start < 5
    assert [(client.is_closed, client.used_after_the_end) for client in clients] == [(True, False)]


async def test_a_request_that_was_cancelled_ends_before_its_client(calls: ServerCalls, clients: list[Client]) -> None:
    request = SlowRequest()
    asking = asyncio.create_task(calls.read(request))
    await until_here(request.began.is_set)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await calls.aclose()
    await until_here(request.ended.is_set)
    assert [(client.is_closed, client.used_after_the_end) for client in clients] == [(True, False)]


async def test_a_client_that_is_being_made_is_closed_too(
    calls: ServerCalls, clients: list[Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Client, "seconds", 0.2)

    async def answers(client: Any) -> str:
        return "reply"

    asking = asyncio.create_task(calls.read(answers))
    await asyncio.sleep(0.05)
    await calls.aclose()
    await asyncio.gather(asking, return_exceptions=True)
    assert [client.is_closed for client in clients] == [True]
