"""Two who write or remove one document at once leave one of the two results, whole."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from graphrag_agent.retrieval.ingestion.updating import remove_document
from graphrag_agent.retrieval.ingestion.writing import Inbox, write_all
from graphrag_agent.retrieval.knowledge_base import KnowledgeBase
from graphrag_agent.retrieval.scope import Scope
from graphrag_agent.retrieval.stores.port import ChunkStore
from graphrag_agent.retrieval.stores.writer_turns import WriterTurns
from graphrag_agent.sync_edge import run_sync
from tests.store_backends import opened_store
from tests.unit.retrieval.ingestion.test_writing import document

ACME = Scope("acme")
OLD = document("a", *(f"old {at}" for at in range(5)))
NEW = document("a", *(f"new text {at}" for at in range(3)))
WRITES = ["write_chunks", "remove_chunks", "write_document"]


@pytest.fixture(params=["memory", "server"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ChunkStore]:
    with opened_store(request.param, tmp_path) as opened:
        run_sync(write(opened, document("a", "first")))
        yield opened


async def write(store: ChunkStore, prepared: Any) -> None:
    inbox = Inbox()
    await inbox.put(prepared)
    await inbox.close()
    await write_all(store, inbox, lambda _, error: None)


class Pause:
    """The store's method waits once, before it is called first (or after), until `seconds` are over."""

    def __init__(self, store: ChunkStore, method: str, seconds: float = 0.3, *, after: bool = False) -> None:
        self._after = after
        self._real = getattr(store, method)
        self._seconds = seconds
        self._reached = threading.Event()
        setattr(store, method, self._once)

    async def reached(self) -> None:
        await asyncio.to_thread(self._reached.wait)

    async def _once(self, *arguments: Any) -> None:
        is_first = not self._reached.is_set()
        if is_first and not self._after:
            await self._wait()
        await self._real(*arguments)
        if is_first and self._after:
            await self._wait()

    async def _wait(self) -> None:
        self._reached.set()
        await asyncio.sleep(self._seconds)


async def whole(store: ChunkStore) -> int:
    """How many chunks are stored; fails where record and chunks don't belong together."""
    chunks, stored = await store.chunks(OLD.document.id, ACME), await store.document(OLD.document.id, ACME)
    assert len(chunks) == (stored.chunk_count if stored else 0)
    assert all(stored and stored.text[chunk.start : chunk.end] == chunk.text for chunk in chunks)
    return len(chunks)


async def at_once(store: ChunkStore, method: str, second: Callable[[], Awaitable[None]], *, after: bool = False) -> int:
    pause = Pause(store, method, after=after)
    first = asyncio.create_task(write(store, OLD))
    await pause.reached()
    await second()
    await first
    return await whole(store)


@pytest.mark.parametrize("method", WRITES)
async def test_a_document_deleted_while_it_is_written_is_gone(store: ChunkStore, method: str) -> None:
    assert await at_once(store, method, lambda: remove_document(store, OLD.document.id)) == 0


@pytest.mark.parametrize("method", WRITES)
async def test_of_two_that_write_one_document_the_second_stays(store: ChunkStore, method: str) -> None:
    assert await at_once(store, method, lambda: write(store, NEW)) == 3


@pytest.mark.parametrize("act", ["write", "delete"])
async def test_what_another_process_did_meanwhile_is_made_good_before_the_record(store: ChunkStore, act: str) -> None:
    async def elsewhere() -> None:
        ours, store.turns = store.turns, WriterTurns()
        await (write(store, NEW) if act == "write" else remove_document(store, OLD.document.id))
        store.turns = ours

    assert await at_once(store, "write_chunks", elsewhere, after=True) == 5


async def test_a_cancelled_delete_is_finished_before_another_writes(store: ChunkStore) -> None:
    pause = Pause(store, "remove_chunks")
    deleting = asyncio.create_task(remove_document(store, OLD.document.id))
    await pause.reached()
    writing = asyncio.create_task(write(store, OLD))
    for _ in range(3):  # a gather cancels twice
        deleting.cancel()
        await asyncio.sleep(0.01)
    assert not deleting.done()
    await asyncio.wait([deleting, writing])
    assert deleting.cancelled()
    assert await whole(store) == 5


async def test_who_waits_for_a_turn_may_be_cancelled_and_holds_up_nobody(store: ChunkStore) -> None:
    pause = Pause(store, "write_chunks", 1.0)
    first = asyncio.create_task(write(store, OLD))
    await pause.reached()
    waiting = asyncio.create_task(remove_document(store, OLD.document.id))
    await asyncio.sleep(0.05)
    waiting.cancel()
    await asyncio.wait([waiting], timeout=0.5)
    assert waiting.cancelled()
    await first
    assert await whole(store) == 5
    await remove_document(store, OLD.document.id)
    assert await whole(store) == 0


async def test_an_error_gives_the_turn_back(store: ChunkStore, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: object) -> None:
        raise OSError("disk full")

    with monkeypatch.context() as full:
        full.setattr(store, "remove_chunks", broken)
        with pytest.raises(OSError, match="disk full"):
            await remove_document(store, OLD.document.id)
    await write(store, NEW)
    assert await whole(store) == 3


async def test_a_sync_delete_on_the_loop_of_an_ingest_waits_for_its_batch_and_no_longer(tmp_path: Path) -> None:
    """As in two cells of a notebook: the delete blocks the loop on which the ingest began."""
    (tmp_path / "a.md").write_text("# A\n\nfirst\n", encoding="utf-8")
    with KnowledgeBase.open(tmp_path / "kb", embedder=None) as one, KnowledgeBase.open(tmp_path / "kb") as other:
        await one.aingest(tmp_path / "a.md")
        [old] = await one.adocuments()
        (tmp_path / "a.md").write_text("# A\n\nsecond\n", encoding="utf-8")
        pause = Pause(one._store._shared.store, "write_document")  # type: ignore[attr-defined]
        ingesting = asyncio.create_task(one.aingest(tmp_path / "a.md"))
        await pause.reached()
        assert other.delete(old.id)
        await ingesting
        assert not (await other.asearch("second")).hits
        assert await other.adocuments() == []


async def test_others_write_between_the_batches_of_a_long_ingest(store: ChunkStore) -> None:
    """A removal isn't kept waiting until all files are written."""
    inbox, first_is_written = Inbox(), asyncio.Event()
    writing = asyncio.create_task(write_all(store, inbox, lambda _, error: first_is_written.set()))
    await inbox.put(OLD)
    await first_is_written.wait()
    await asyncio.wait_for(remove_document(store, OLD.document.id), 5)
    await inbox.close()
    await writing
    assert await whole(store) == 0


async def test_two_openers_of_one_server_share_its_turns() -> None:
    url = "http://127.0.0.1:6333"
    bases = [KnowledgeBase.open(url, embedder=None), KnowledgeBase.open(f"{url}/", embedder=None)]
    assert bases[0]._store.turns is bases[1]._store.turns
    for base in bases:
        await base.aclose()
