from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path

from graphrag_agent.retrieval.ingestion import writing
from graphrag_agent.retrieval.ingestion.preparation import IngestTarget, PreparedDocument, make_document
from graphrag_agent.retrieval.ingestion.workers.answer import Answer, PreparedPassage
from graphrag_agent.retrieval.ingestion.workers.team import ReadFile
from graphrag_agent.retrieval.ingestion.writing import Inbox, write_all
from graphrag_agent.retrieval.scope import Scope
from graphrag_agent.retrieval.stores.memory import MemoryStore
from graphrag_agent.retrieval.stores.port import ChunkRecord
from tests.waiting import until_here


class NotedStore(MemoryStore):
    """Remembers in which order what was written, and refuses chunks with certain words."""

    def __init__(self, refused: str = "") -> None:
        super().__init__()
        self.steps: list[str] = []
        self.refused = refused

    async def write_chunks(self, records: Sequence[ChunkRecord]) -> None:
        self.steps.append(f"chunks {len(records)}")
        if self.refused and any(self.refused in record.chunk.text for record in records):
            raise OSError("disk full")
        await super().write_chunks(records)

    async def write_document(self, document) -> None:
        self.steps.append("record" if document.content_hash else "unfinished")
        await super().write_document(document)

    async def remove_document(self, document_id: str) -> None:
        self.steps.append("no record")
        await super().remove_document(document_id)

    async def flush(self) -> None:
        self.steps.append("flush")


def document(name: str, *texts: str) -> PreparedDocument:
    text = "\n".join(texts)
    starts = [sum(len(before) + 1 for before in texts[:at]) for at in range(len(texts))]
    passages = [
        PreparedPassage(start, start + len(part), "", None, {part: 1})
        for start, part in zip(starts, texts, strict=True)
    ]
    target = IngestTarget(Path("/kb"), "acme", "c")
    return make_document(Path(f"/kb/{name}"), target, ReadFile(Answer(name, "txt", text, passages), name))


async def write(store: MemoryStore, *documents: PreparedDocument) -> dict[str, str]:
    """Name -> error, "" without one."""
    told: dict[str, str] = {}
    inbox = Inbox()
    for prepared in documents:
        await inbox.put(prepared)
    await inbox.close()
    await write_all(store, inbox, lambda prepared, error: told.update({prepared.path.name: str(error or "")}))
    return told


async def test_new_documents_are_written_together_records_last_and_safe_after_two_flushes() -> None:
    store = NotedStore()
    assert await write(store, document("a", "one", "two"), document("b", "three")) == {"a": "", "b": ""}
    assert store.steps == ["chunks 3", "flush", "record", "record", "flush"]


async def test_the_old_record_is_safely_unfinished_before_a_chunk_changes() -> None:
    store = NotedStore()
    await write(store, document("a", "one"))
    store.steps.clear()
    await write(store, document("a", "one", "two"), document("b", "three"))
    assert store.steps == ["unfinished", "flush", "chunks 3", "flush", "record", "record", "flush"]


async def test_only_the_document_at_fault_is_left_out() -> None:
    store = NotedStore(refused="bad")
    names = ["bad" if at == 4 else f"good{at}" for at in range(9)]
    told = await write(store, *(document(name, name) for name in names))
    assert told == {name: "disk full" if name == "bad" else "" for name in names}
    assert (await store.counts(Scope("acme"))).documents == 8


async def test_a_store_that_takes_nothing_is_not_asked_for_each_document() -> None:
    store = NotedStore(refused="text")
    told = await write(store, *(document(str(at), "text") for at in range(30)))
    assert list(told.values()) == ["disk full"] * 30
    assert store.steps.count("chunks 1") == 3


async def test_who_brings_too_much_waits_until_some_is_taken() -> None:
    inbox = Inbox()
    large = document("large", *map(str, range(writing.MOST_WAITING_CHUNKS)))
    await inbox.put(large)
    second = asyncio.create_task(inbox.put(document("small", "text")))
    await asyncio.sleep(0.01)
    assert not second.done()
    assert await inbox.take() == [large]
    await second
    assert [prepared.path.name for prepared in await inbox.take()] == ["small"]


async def test_documents_that_come_one_after_the_other_share_their_flushes() -> None:
    store, inbox = NotedStore(), Inbox()
    writer = asyncio.create_task(write_all(store, inbox, lambda prepared, error: None))
    for name in ("a", "b", "c"):
        await inbox.put(document(name, "text"))
        await asyncio.sleep(0.01)
    await inbox.close()
    await writer
    assert store.steps == ["chunks 3", "flush", "record", "record", "record", "flush"]


async def test_enough_chunks_are_written_at_once_and_a_few_after_a_while(monkeypatch) -> None:
    inbox = Inbox()
    enough = document("enough", *map(str, range(writing.BATCH_CHUNKS)))
    await inbox.put(enough)
    monkeypatch.setattr(writing, "BATCH_SECONDS", 60)
    assert await asyncio.wait_for(inbox.take(), 5) == [enough]
    monkeypatch.setattr(writing, "BATCH_SECONDS", 0.2)
    few = document("few", "text")
    await inbox.put(few)
    taken = asyncio.create_task(inbox.take())
    await asyncio.sleep(0.01)
    assert not taken.done()
    assert await asyncio.wait_for(taken, 5) == [few]


async def test_a_cancelled_writer_finishes_the_batch_at_hand() -> None:
    begun, may_end = threading.Event(), threading.Event()  # the store's turn is on the background loop

    class SlowStore(NotedStore):
        async def write_chunks(self, records: Sequence[ChunkRecord]) -> None:
            begun.set()
            assert await asyncio.to_thread(may_end.wait, 20)
            await super().write_chunks(records)

    store, inbox = SlowStore(), Inbox()
    await inbox.put(document("a", "one"))
    await inbox.close()
    writer = asyncio.create_task(write_all(store, inbox, lambda prepared, error: None))
    await until_here(begun.is_set)
    writer.cancel()
    may_end.set()
    await asyncio.wait([writer])
    assert writer.cancelled()
    assert (await store.counts(Scope("acme"))).documents == 1
