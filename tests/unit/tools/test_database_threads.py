"""Work on databases holds up nothing else, and ends when nobody waits for it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from graphrag_agent.errors import ToolFailedError
from graphrag_agent.retrieval.scope import Scope
from graphrag_agent.tools._database_access import DatabaseConfig
from graphrag_agent.tools._database_reading import SqliteReader, Stop
from graphrag_agent.tools._database_schema import TableInfo
from graphrag_agent.tools._database_threads import MOST_THREADS, run_stoppable
from graphrag_agent.tools._databases import Databases


async def test_slow_databases_leave_the_threads_of_others_free_and_a_call_given_up_in_time_never_runs() -> None:
    end, ran = threading.Event(), list[int]()

    def slow(number: int) -> int:
        ran.append(number)
        end.wait(20)
        return number

    calls = [asyncio.create_task(run_stoppable(lambda _, n=number: slow(n))) for number in range(MOST_THREADS + 40)]
    try:
        async with asyncio.timeout(5):
            assert await asyncio.to_thread(lambda: 7) == 7
        for call in calls[MOST_THREADS + 10 :]:
            call.cancel()
        found = asyncio.gather(*calls, return_exceptions=True)
        await asyncio.sleep(0.05)
        assert len(ran) == MOST_THREADS
    finally:
        end.set()
    answers = await found
    assert answers[: MOST_THREADS + 10] == list(range(MOST_THREADS + 10)) and sorted(ran) == answers[: len(ran)]
    assert all(isinstance(answer, asyncio.CancelledError) for answer in answers[MOST_THREADS + 10 :])


async def test_a_call_that_is_given_up_ends_what_it_runs_while_all_threads_are_taken() -> None:
    ended = threading.Event()

    def work(stop: Stop) -> None:
        with stop.ends(ended.set):
            ended.wait(20)

    calls = [asyncio.create_task(run_stoppable(work)) for _ in range(MOST_THREADS)]
    await asyncio.sleep(0.1)
    calls[0].cancel()
    async with asyncio.timeout(5):
        answers = await asyncio.gather(*calls, return_exceptions=True)
    assert isinstance(answers[0], asyncio.CancelledError) and answers[1:] == [None] * (MOST_THREADS - 1)


@pytest.mark.skipif(sys.platform == "win32", reason="forks")
def test_a_forked_process_has_threads_of_its_own() -> None:
    program = """
import asyncio, os
from graphrag_agent.tools._database_threads import run_stoppable
asyncio.run(run_stoppable(lambda stop: None))
child = os.fork()
if not child:
    print(asyncio.run(asyncio.wait_for(run_stoppable(lambda stop: 7), 5)), flush=True)
    os._exit(0)
os.waitpid(child, 0)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout == "7\n", done.stderr


def test_who_waits_for_the_schema_in_vain_reads_it_no_more(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    began, go_on, inspected = threading.Event(), threading.Event(), list[int]()

    def read(reader: SqliteReader, schemas: Sequence[str], is_needed: object, stop: Stop) -> tuple[TableInfo, ...]:
        inspected.append(1)
        began.set()
        go_on.wait(20)
        raise ToolFailedError("stopped")

    monkeypatch.setattr(SqliteReader, "inspected", read)
    (tmp_path / "shop.db").touch()
    rule = {"tenants": ["acme"], "tables": "*"}
    given = {"url": "sqlite:///shop.db", "description": "d", "access": [rule]}
    databases = Databases({"shop": DatabaseConfig.model_validate(given)}, folder=tmp_path)
    database, access = databases.open_to(Scope("acme"))["shop"]
    said, stop = list[str](), Stop()

    def ask(stop: Stop) -> None:
        try:
            database.tables(access, stop)
        except ToolFailedError as error:
            said.append(str(error))

    first = threading.Thread(target=ask, args=(Stop(),))
    first.start()
    assert began.wait(5)
    second = threading.Thread(target=ask, args=(stop,))
    second.start()
    stop.now()
    assert database.reader.dialect == "sqlite", "what needs no schema waits for none"
    go_on.set()
    first.join(5)
    second.join(5)
    assert said == ["stopped", "the query was given up before it ran"] and len(inspected) == 1
