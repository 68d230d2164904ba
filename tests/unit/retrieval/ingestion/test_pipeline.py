from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from graphrag_agent.retrieval.embedders import LangChainEmbedder
from graphrag_agent.retrieval.ingestion.embedding import fill_vectors
from graphrag_agent.retrieval.ingestion.pipeline import IngestReport, ingest
from graphrag_agent.retrieval.ingestion.preparation import IngestTarget
from graphrag_agent.retrieval.knowledge_base import KnowledgeBase
from graphrag_agent.retrieval.scope import Scope
from graphrag_agent.retrieval.stores.memory import MemoryStore
from graphrag_agent.retrieval.stores.port import ChunkRecord
from graphrag_agent.retrieval.tokenizer import count_terms
from tests.hashing_embeddings import HashingEmbeddings
from tests.waiting import is_running, until

ROOT = Path(__file__).parents[4]


class CountingStore(MemoryStore):
    """Remembers every write by name, and can fail at one of them."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[str] = []
        self.fail_at: str | None = None

    def _note(self, name: str) -> None:
        self.writes.append(name)
        if name == self.fail_at:
            raise OSError("disk full")

    async def write_chunks(self, records: list[ChunkRecord]) -> None:
        self._note("chunks")
        await super().write_chunks(records)

    async def remove_chunks(self, chunk_ids: list[str]) -> None:
        self._note("remove chunks")
        await super().remove_chunks(chunk_ids)

    async def write_document(self, document) -> None:
        self._note("document" if document.content_hash else "unfinished document")
        await super().write_document(document)


class Workplace:
    """A folder of files and a store that counts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = CountingStore()

    def write(self, name: str, *paragraphs: str) -> None:
        (self.folder / name).write_text("\n\n".join(paragraphs), encoding="utf-8")

    async def ingest(self, *, progress=None, **place: object) -> IngestReport:
        self.store.writes.clear()
        target = IngestTarget(**{"root": self.folder, "tenant": "acme", "collection": "c", **place})
        return await ingest(self.store, [self.folder], target, progress)

    async def sees(self, word: str, *groups: str) -> int:
        return len(await self.store.search_bm25(count_terms(word), Scope("acme", frozenset(groups)), 99))


@pytest_asyncio.fixture
async def place(tmp_path: Path) -> AsyncIterator[Workplace]:
    made = Workplace(tmp_path)
    made.write("a.md", "# Alpha", "first text", "## Part", "second text")
    made.write("b.md", "# Beta", "third text")
    yield made
    await made.store.aclose()


async def test_an_unchanged_folder_is_not_written_again(place: Workplace) -> None:
    assert await place.ingest() == IngestReport(documents=2, chunks=3, unchanged=0)
    assert await place.ingest() == IngestReport(documents=0, chunks=0, unchanged=2)
    assert place.store.writes == []


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names")
async def test_files_whose_name_or_folder_is_not_utf8_are_left_out_alone_and_told_why(tmp_path: Path) -> None:
    root = tmp_path / os.fsdecode(b"r\xfc")  # sources are relative to it, so its own name does no harm
    folder = root / os.fsdecode(b"a\xfcbersicht")
    folder.mkdir(parents=True)
    for at in range(5):
        (folder / f"{at}.md").write_text(f"# Bad {at}\n\nbad text")
    for at in range(3):
        (root / f"good{at}.md").write_text(f"# Good {at}\n\ngood text")
    (root / os.fsdecode(b"caf\xe9.txt")).symlink_to(root / "good0.md")
    with KnowledgeBase.open(root / "kb", embedder=None) as knowledge:
        first, second = knowledge.ingest(root), knowledge.ingest(root)
        assert len(knowledge.search("good text").hits) == 3
    assert (first.documents, second.documents, second.unchanged) == (3, 0, 3)
    reason = "its name or its folder's isn't UTF-8; rename it"
    assert second.failed == tuple((path, f"{path}: {reason}") for path in [str(folder / f"{at}.md") for at in range(5)])


async def test_a_changed_file_keeps_the_chunks_and_vectors_of_passages_that_stayed(place: Workplace) -> None:
    await place.ingest()
    await fill_vectors(place.store, LangChainEmbedder(HashingEmbeddings()))
    before = set(await place.store.chunk_ids((await place.store.documents(Scope("acme")))[0].id))
    place.write("a.md", "# Alpha", "first text", "## Part", "altered text")
    assert await place.ingest() == IngestReport(documents=1, chunks=2, unchanged=1)
    [pending] = await place.store.pending_chunks(9)
    assert pending.text.endswith("altered text")
    after = set(await place.store.chunk_ids((await place.store.documents(Scope("acme")))[0].id))
    assert len(before & after) == 1
    assert (await place.sees("second"), await place.sees("altered")) == (0, 1)


async def test_new_groups_reach_every_chunk_and_leave_its_vector(place: Workplace) -> None:
    await place.ingest(groups=("hr",))
    await fill_vectors(place.store, LangChainEmbedder(HashingEmbeddings()))
    assert (await place.sees("text"), await place.sees("text", "hr")) == (0, 3)
    assert (await place.ingest(groups=("legal",))).documents == 2
    assert (await place.sees("text", "hr"), await place.sees("text", "legal")) == (0, 3)
    assert await place.store.pending_chunks(9) == []


@pytest.mark.parametrize("change", [{"metadata": {"year": 1}}, {"collection": "d"}, {"tenant": "other"}])
async def test_what_decides_about_a_document_makes_it_written_anew(place: Workplace, change: dict[str, object]) -> None:
    await place.ingest()
    assert (await place.ingest(**change)).documents == 2


async def test_the_same_passage_twice_in_a_document_is_two_chunks(place: Workplace) -> None:
    place.write("b.md", "# Beta", "same words", "# Other", "between", "# Beta", "same words")
    report = await place.ingest()
    assert report.chunks == 5
    assert await place.sees("same") == 2


async def test_a_file_that_fails_is_named_and_the_others_go_on(place: Workplace) -> None:
    (place.folder / "broken.pdf").write_bytes(b"no pdf")
    place.write("empty.txt", "  ")
    told: list[tuple[int, int, str]] = []
    report = await place.ingest(progress=lambda *step: told.append(step))
    assert [Path(failed.path).name for failed in report.failed] == ["broken.pdf", "empty.txt"]
    assert "holds no text" in report.failed[1].error
    assert report.documents == 2
    assert [done for done, _, _ in told] == [1, 2, 3, 4]
    assert {name for _, total, name in told if total == 4} == {"a.md", "b.md", "broken.pdf", "empty.txt"}


@pytest.mark.parametrize("step", ["unfinished document", "chunks", "remove chunks", "document"])
async def test_whatever_step_failed_the_next_ingest_mends_it(place: Workplace, step: str) -> None:
    await place.ingest()
    place.write("a.md", "# Alpha", "wholly new")
    place.store.fail_at = step
    report = await place.ingest()
    assert [failed.error for failed in report.failed] == ["disk full"]
    place.store.fail_at = None
    place.write("a.md", "# Alpha", "first text", "## Part", "second text")  # even back to what it was
    await place.ingest()
    assert (await place.sees("wholly"), await place.sees("second"), await place.sees("text")) == (0, 1, 3)
    assert (await place.ingest()).unchanged == 2


KILLED = """
import os, signal, sys
from graphrag_agent.retrieval.ingestion.workers.pool import shared_pool
from graphrag_agent.retrieval.knowledge_base import KnowledgeBase
from tests.hashing_embeddings import HashingEmbeddings
knowledge = KnowledgeBase.open(sys.argv[1] + "/kb", embedder=HashingEmbeddings())
def kill(done, total, name):
    if done == int(sys.argv[2]):
        workers = [*shared_pool._lent, *(worker for _, worker in shared_pool._idle)]
        print(*(worker._process.pid for worker in workers), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
knowledge.ingest(sys.argv[1] + "/docs", progress=kill)
"""


def run_apart(code: str, *arguments: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])}
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments], env=environment, stdout=subprocess.PIPE, text=True
    )


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL on this system")
@pytest.mark.parametrize("at", [1, 60])
def test_after_a_kill_the_next_ingest_finishes_the_work(tmp_path: Path, at: int) -> None:
    (tmp_path / "docs").mkdir()
    for number in range(80):
        (tmp_path / "docs" / f"{number:02}.md").write_text(f"# Note {number}\n\nword w{number}\n", encoding="utf-8")
    killed = run_apart(KILLED, str(tmp_path), str(at))
    pids = [int(pid) for pid in killed.communicate()[0].split()]
    assert killed.returncode == -signal.SIGKILL
    assert pids
    until(lambda: not any(map(is_running, pids)))
    with KnowledgeBase.open(tmp_path / "kb", embedder=HashingEmbeddings()) as knowledge:
        report = knowledge.ingest(tmp_path / "docs")
        assert report.unchanged >= at
        assert report.unchanged + report.documents == knowledge.stats().documents == knowledge.stats().chunks == 80
        assert knowledge.search("w79", legs=["bm25"]).hits[0].chunk.text.endswith("word w79")


INTERRUPTED = """
import sys, threading, time
from graphrag_agent.retrieval.ingestion.workers import pool
from graphrag_agent.retrieval.ingestion.workers.process import WorkerProcess
from graphrag_agent.retrieval.knowledge_base import KnowledgeBase
def start_hanging():
    worker = WorkerProcess([sys.executable, "-c", "import time; time.sleep(60)"])
    print(worker._process.pid, flush=True)
    return worker
pool.shared_pool._start = start_hanging
with KnowledgeBase.open(":memory:", embedder="none") as knowledge:
    knowledge.ingest(sys.argv[1])
"""


@pytest.mark.skipif(os.name != "posix", reason="no such interrupt on this system")
def test_an_interrupt_ends_an_ingest_and_its_workers_at_once(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("Text.", encoding="utf-8")
    interrupted = run_apart(INTERRUPTED, str(tmp_path))
    assert interrupted.stdout
    pid = int(interrupted.stdout.readline())
    began = time.monotonic()
    interrupted.send_signal(signal.SIGINT)
    interrupted.communicate(timeout=25)
    assert time.monotonic() - began < 20
    assert interrupted.returncode != 0
    until(lambda: not is_running(pid), seconds=2)


async def test_a_progress_callback_that_raises_ends_the_ingest(place: Workplace) -> None:
    def stop(done: int, total: int, name: str) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        await place.ingest(progress=stop)


async def test_the_report_tells_the_speed_and_names_failures_in_the_order_of_files(place: Workplace) -> None:
    for name in ("z.pdf", "d.pdf", "m.pdf"):
        (place.folder / name).write_bytes(b"no pdf")
    report = await place.ingest()
    assert [Path(failed.path).name for failed in report.failed] == ["d.pdf", "m.pdf", "z.pdf"]
    assert report.seconds > 0
    assert report.chunks_per_second == pytest.approx(3 / report.seconds)
    assert IngestReport(documents=0, chunks=0, unchanged=0).chunks_per_second == 0


async def test_an_unreadable_file_says_why(place: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> str:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("graphrag_agent.retrieval.ingestion.pipeline.hash_file", refuse)
    (place.folder / "a.md").unlink()
    (place.folder / "a.md").symlink_to(place.folder / "gone.md")
    report = await place.ingest()
    assert [failed.error for failed in report.failed] == [
        f"{place.folder / 'a.md'}: can't be read (No such file or directory); check the path and its permissions"
    ]
    assert report.documents == 1
