from __future__ import annotations

import asyncio
import gc
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from graphrag_agent.errors import KnowledgeBaseError, StoreLockedError
from graphrag_agent.retrieval.knowledge_base import KnowledgeBase
from graphrag_agent.retrieval.stores.sharing import StoreLease, share_store


class CountedStore:
    """Refuses to be opened while another one is, as the folder's lock would."""

    open_now = 0
    opened = 0

    def __init__(self, folder: Path) -> None:
        assert CountedStore.open_now == 0
        CountedStore.open_now += 1
        CountedStore.opened += 1

    def close(self) -> None:
        CountedStore.open_now -= 1

    async def answer(self) -> str:
        return "found"


@pytest.fixture(autouse=True)
def _nothing_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CountedStore, "open_now", 0)
    monkeypatch.setattr(CountedStore, "opened", 0)


def open_base(folder: Path) -> KnowledgeBase:
    return KnowledgeBase.open(folder, embedder="none")


def note(folder: Path, text: str = "The pump hums.") -> Path:
    path = folder / "note.md"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_folder_that_is_opened_again_shows_the_same_documents_to_both(tmp_path: Path) -> None:
    with open_base(tmp_path / "kb") as first, open_base(tmp_path / "kb") as second:
        first.ingest(note(tmp_path))
        assert [hit.chunk.source for hit in second.search("pump").hits] == ["note.md"]
        second.delete(second.documents()[0].id)
        assert first.stats().documents == 0


def test_the_last_close_frees_the_folder_and_closing_twice_takes_nothing_from_others(tmp_path: Path) -> None:
    first, second = open_base(tmp_path / "kb"), open_base(tmp_path / "kb")
    first.ingest(note(tmp_path))
    first.close()
    first.close()
    assert second.stats().documents == 1
    assert _opened_by_another_process(tmp_path / "kb") == StoreLockedError.__name__
    second.close()
    assert _opened_by_another_process(tmp_path / "kb") == "1 document"


def test_what_was_closed_says_so(tmp_path: Path) -> None:
    with open_base(tmp_path / "kb") as closed:
        pass
    with pytest.raises(KnowledgeBaseError, match="is closed: open it again"):
        closed.stats()


def test_another_path_to_the_folder_shares_too(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "kb")
    with open_base(tmp_path / "kb") as first, open_base(tmp_path / "link") as second:
        first.ingest(note(tmp_path))
        assert second.stats().documents == 1


def test_a_folder_that_was_removed_and_made_again_is_another_one(tmp_path: Path) -> None:
    first = open_base(tmp_path / "kb")
    first.ingest(note(tmp_path))
    shutil.rmtree(tmp_path / "kb")
    with open_base(tmp_path / "kb") as second:
        assert second.stats().documents == 0


def test_a_forked_process_does_not_get_its_parents_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_base(tmp_path / "kb"), monkeypatch.context() as forked:
        forked.setattr("os.getpid", lambda: 1)
        with pytest.raises(StoreLockedError, match="is open in process"):
            open_base(tmp_path / "kb")


def test_a_base_that_was_dropped_unclosed_keeps_nothing(tmp_path: Path) -> None:
    dropped = open_base(tmp_path / "kb")
    kept = open_base(tmp_path / "kb")
    kept.ingest(note(tmp_path))
    del dropped
    gc.collect()
    kept.close()
    assert _opened_by_another_process(tmp_path / "kb") == "1 document"


async def test_a_store_that_cannot_be_built_is_built_at_the_next_try(tmp_path: Path) -> None:
    def broken(folder: Path) -> Any:
        raise StoreLockedError("taken")

    with pytest.raises(StoreLockedError):
        share_store(tmp_path / "kb", broken)
    lease = share_store(tmp_path / "kb", CountedStore)
    assert await lease.answer() == "found"
    await lease.aclose()
    assert CountedStore.open_now == 0


def test_many_threads_open_use_and_close_one_folder(tmp_path: Path) -> None:
    start = threading.Barrier(8)

    def visit(_: int) -> list[str]:
        start.wait()
        return [asyncio.run(once()) for _ in range(10)]

    async def once() -> str:
        lease: StoreLease = share_store(tmp_path / "kb", CountedStore)
        try:
            return str(await lease.answer())
        finally:
            await lease.aclose()

    with ThreadPoolExecutor(8) as threads:
        assert {answer for answers in threads.map(visit, range(8)) for answer in answers} == {"found"}
    assert CountedStore.open_now == 0
    assert 1 <= CountedStore.opened <= 80


def _opened_by_another_process(folder: Path) -> str:
    code = (
        "import sys\n"
        "from graphrag_agent import KnowledgeBase\n"
        "try:\n"
        "    with KnowledgeBase.open(sys.argv[1], embedder='none') as base:\n"
        "        print(base.stats().documents, 'document')\n"
        "except Exception as error:\n"
        "    print(type(error).__name__)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(folder)], capture_output=True, text=True, check=True)
    return done.stdout.strip()
