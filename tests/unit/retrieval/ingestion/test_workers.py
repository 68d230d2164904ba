from __future__ import annotations

import asyncio
import io
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphrag_agent.errors import ParseError
from graphrag_agent.retrieval.ingestion.workers import process, team
from graphrag_agent.retrieval.ingestion.workers.answer import read_answer
from graphrag_agent.retrieval.ingestion.workers.pool import WorkerPool
from graphrag_agent.retrieval.ingestion.workers.process import WorkerProcess
from graphrag_agent.retrieval.ingestion.workers.team import ReadFile, Team
from tests.waiting import is_running, until_here

PROGRAM = """
import json, os, sys, time
while line := sys.stdin.buffer.readline():
    request = json.loads(line)
    data = sys.stdin.buffer.read(request["size"])
    if data == b"hang":
        time.sleep(60)
    if data == b"die":
        os.abort()
    if data == b"die if worn" and getattr(sys, "worn", False):
        os.abort()
    if data == b"babble":
        while True:
            os.write(1, b"x" * 100_000)
    sys.worn = True
    told = f"{os.getpid()} {'SOME_API_KEY' in os.environ} {len(data)}"
    text = {"title": "", "source_type": "txt", "text": told, "passages": []}
    print(json.dumps({"error": "locked; unlock it"} if data == b"refuse" else text), flush=True)
"""


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[WorkerPool]:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    made = WorkerPool(2, lambda: WorkerProcess([sys.executable, str(program)]))
    yield made
    made.close()


class Desk:
    """Lets a team read what is given as bytes."""

    def __init__(self, pool: WorkerPool, folder: Path) -> None:
        self.pool = pool
        self.folder = folder

    async def read_all(self, *contents: bytes, tenant: str = "t", seconds: float = 9) -> list[ReadFile | BaseException]:
        paths = []
        for at, content in enumerate(contents):
            paths.append(self.folder / f"{at}.txt")
            paths[-1].write_bytes(content)
        async with Team(tenant, pool=self.pool, seconds=seconds) as readers:
            return await asyncio.gather(*map(readers.read, paths), return_exceptions=True)

    async def pid(self, content: bytes = b"x", tenant: str = "t") -> int:
        (found,) = await self.read_all(content, tenant=tenant)
        return pid_of(found)


def pid_of(found: ReadFile | BaseException) -> int:
    assert isinstance(found, ReadFile), found
    return int(found.answer.text.split()[0])


@pytest.fixture
def desk(pool: WorkerPool, tmp_path: Path) -> Desk:
    return Desk(pool, tmp_path)


async def test_two_workers_serve_many_files_and_the_last_one_stays(desk: Desk) -> None:
    found = await desk.read_all(*[b"x" * 300_000] * 9)
    pids = {pid_of(item) for item in found}
    assert len(pids) <= 2
    assert all(isinstance(item, ReadFile) and item.answer.text.endswith(" 300000") for item in found)
    assert await desk.pid() in pids
    assert sum(map(is_running, pids)) == 1


async def test_a_refusal_is_the_reason_and_names_the_file(desk: Desk) -> None:
    (error,) = await desk.read_all(b"refuse")
    assert str(error) == f"{desk.folder / '0.txt'}: locked; unlock it"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"die", "broke down .* split it"),
        (b"hang", "more than 1 seconds to read; split it"),
        (b"babble", "too much text .* split it"),
    ],
)
async def test_a_worker_that_dies_hangs_or_babbles_is_replaced(
    desk: Desk, data: bytes, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "MAX_ANSWER_BYTES", 1_000_000)
    before = await desk.pid()
    (error,) = await desk.read_all(data, seconds=1)
    with pytest.raises(ParseError, match=reason):
        raise error
    assert await desk.pid() != before
    assert not is_running(before)


async def test_a_file_that_a_worn_worker_fails_at_is_read_by_a_fresh_one(desk: Desk) -> None:
    before = await desk.pid()
    assert await desk.pid(b"die if worn") != before


async def test_tenants_have_workers_of_their_own(desk: Desk) -> None:
    first = await desk.pid(tenant="a")
    second = await desk.pid(tenant="b")
    assert first != second
    assert await desk.pid(tenant="b") == second


async def test_workers_get_no_keys(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "secret")
    (found,) = await desk.read_all(b"x")
    assert isinstance(found, ReadFile)
    assert found.answer.text.split()[1] == "False"


async def test_who_stops_waiting_ends_the_worker(desk: Desk) -> None:
    reading = asyncio.create_task(desk.read_all(b"hang", b"hang", b"hang"))
    await until_here(lambda: len(desk.pool._lent) == 2)
    pids = [worker._process.pid for worker in desk.pool._lent]
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    await until_here(lambda: not any(map(is_running, pids)), seconds=8)


async def test_a_worker_that_starts_for_one_who_stopped_waiting_ends_too(desk: Desk) -> None:
    start, may_start, started = desk.pool._start, threading.Event(), list[WorkerProcess]()

    def late() -> WorkerProcess:
        may_start.wait()
        started.append(start())
        return started[-1]

    desk.pool._start = late
    reading = asyncio.create_task(desk.read_all(b"x"))
    await until_here(lambda: desk.pool._slots._value == 1)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    may_start.set()
    await until_here(lambda: started and not is_running(started[0]._process.pid))


async def test_a_file_that_shrinks_while_it_is_read_is_an_error(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    class Larger:
        st_size = 99

    monkeypatch.setattr(team.os, "fstat", lambda descriptor: Larger)
    (error,) = await desk.read_all(b"x")
    assert "became shorter while it was read" in str(error)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
async def test_a_forked_copy_leaves_its_parents_workers_alone(desk: Desk) -> None:
    mine = await desk.pid()
    child = os.fork()
    if child == 0:
        desk.pool.forget()
        desk.pool.close()
        os._exit(len(desk.pool._idle))
    assert (await asyncio.to_thread(os.waitpid, child, 0))[1] == 0
    assert await desk.pid() == mine


def ask(worker: WorkerProcess, name: str, data: bytes, seconds: float = 20) -> bytes:
    return worker.ask(name, io.BytesIO(data), len(data), seconds=seconds, seen=len)


@pytest.fixture
def worker() -> Iterator[WorkerProcess]:
    made = WorkerProcess()
    yield made
    made.close()


def test_the_real_worker_parses_cuts_and_counts(worker: WorkerProcess) -> None:
    answer = read_answer(ask(worker, "leave-policy.md", b"# Leave\n\nTen days of leave.\n"))
    (passage,) = answer.passages
    assert (answer.title, answer.source_type, passage.heading) == ("Leave", "md", "Leave")
    assert answer.text[passage.start : passage.end] == "# Leave\n\nTen days of leave."
    assert passage.terms == {"leav": 3, "ten": 1, "day": 1, "of": 1}


TIGHT = """
import graphrag_agent.retrieval.ingestion.workers.program as program
program.MAX_MEMORY_BYTES, program._WORN_BYTES = 200_000_000, 100_000_000
program.main()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems don't limit memory so")
def test_a_file_that_needs_too_much_memory_is_refused_and_its_worker_goes() -> None:
    worker = WorkerProcess([sys.executable, "-c", TIGHT])
    with pytest.raises(ParseError, match=r"more than 1 GB of memory|out of 1 GB"):
        read_answer(ask(worker, "bomb.json", b"[" + b'["x"],' * 1_000_000 + b"0]"))
    worker._process.wait(5)
    assert not worker.is_alive
    worker.close()


SLOW = """
import graphrag_agent.retrieval.ingestion.workers.program as program
import time
program.PARSE_SECONDS, program._SPARE_SECONDS = 1, 0
program.parse_data = lambda name, data: time.sleep(60)
program.main()
"""


@pytest.mark.skipif(not hasattr(signal, "alarm"), reason="no alarm on this system")
def test_a_worker_whose_starter_is_gone_ends_itself() -> None:
    hanging = subprocess.Popen([sys.executable, "-c", SLOW], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    hanging.communicate(b'{"name": "a.md", "size": 1}\nx', timeout=30)
    assert hanging.returncode == -signal.SIGALRM


def test_a_worker_loads_nothing_heavy() -> None:
    code = """
    import sys, time
    import graphrag_agent.retrieval.ingestion.workers.program as program
    program._prepared("a.md", ("# A\\n\\n" + "Some words here. " * 400).encode())
    heavy = {"langchain_core", "langgraph", "pydantic", "numpy", "qdrant_client", "pypdf", "bs4", "kreuzberg"}
    print(sorted(heavy & set(sys.modules)))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


GOOD = {
    "title": "T",
    "source_type": "txt",
    "text": "one two",
    "passages": [[0, 3, "", None, {"one": 1}], [4, 7, "H", 2, {}]],
}


def test_a_good_answer_is_read() -> None:
    answer = read_answer(json.dumps(GOOD).encode())
    assert [(passage.start, passage.end, passage.page) for passage in answer.passages] == [(0, 3, None), (4, 7, 2)]


@pytest.mark.parametrize(
    "change",
    [
        {"title": None},
        {"title": "\ud800"},
        {"source_type": 7},
        {"text": ["one two"]},
        {"passages": None},
        {"passages": {"0": 1}},
        {"passages": [[0, 3, "", None]]},
        {"passages": [[0, 8, "", None, {}]]},
        {"passages": [[3, 3, "", None, {}]]},
        {"passages": [[-1, 3, "", None, {}]]},
        {"passages": [[0.0, 3, "", None, {}]]},
        {"passages": [[False, True, "", None, {}]]},
        {"passages": [[0, 5, "", None, {}], [4, 7, "", None, {}]]},
        {"passages": [[0, 3, None, None, {}]]},
        {"passages": [[0, 3, "", 0, {}]]},
        {"passages": [[0, 3, "", "2", {}]]},
        {"passages": [[0, 3, "", None, {"one": -1}]]},
        {"passages": [[0, 3, "", None, {"one": 1.5}]]},
        {"passages": [[0, 3, "", None, {"one": 10**30}]]},
        {"passages": [[0, 3, "", None, {"\ud800": 1}]]},
        {"passages": [[0, 3, "", None, ["one"]]]},
        {"error": ["no"]},
    ],
    ids=str,
)
def test_an_answer_of_a_worker_that_was_taken_over_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(ParseError, match="answered nonsense"):
        read_answer(json.dumps({**GOOD, **change}).encode())


@pytest.mark.parametrize("line", [b"\n", b"7", b"[]", b"{", b"{}", b"\xff", b"[" * 100_000, b'{"text": NaN}'])
def test_what_is_no_answer_is_refused(line: bytes) -> None:
    with pytest.raises(ParseError, match="answered nonsense"):
        read_answer(line)


def test_a_reason_is_one_short_line() -> None:
    with pytest.raises(ParseError) as caught:
        read_answer(json.dumps({"error": "a\nb " + "x" * 10_000}).encode())
    assert str(caught.value).startswith("a b xxx")
    assert len(str(caught.value)) == 400


LARGE_PARENT = """
import io, time
from graphrag_agent.retrieval.ingestion.workers.process import WorkerProcess

large = bytearray(400_000_000)
large[::4096] = bytes(len(large[::4096]))  # touched, so that it is there
worker = WorkerProcess()
worker.ask("a.txt", io.BytesIO(b"one"), 3, seconds=30, seen=lambda _: None)
time.sleep(0.5)
print(worker.is_alive)
worker.close()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only there a process begins with its parent's peak of memory")
def test_a_worker_of_a_large_process_is_not_worn_by_its_parents_memory():
    ran = subprocess.run([sys.executable, "-c", LARGE_PARENT], capture_output=True, text=True, timeout=60)
    assert ran.stdout == "True\n", ran.stderr
