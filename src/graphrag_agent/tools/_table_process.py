"""Runs a `TableJob` in a process of its own, which is killed with its call. `run_job` is the entry."""

from __future__ import annotations

import asyncio
import io
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from pydantic import ValidationError

from graphrag_agent.errors import ParseError, ToolFailedError
from graphrag_agent.retrieval.ingestion.workers.process import WorkerProcess
from graphrag_agent.tools._table_answer import TableAnswer, TableJob

COMMAND = (sys.executable, "-P", "-m", "graphrag_agent.tools._table_worker")
MOST_AT_ONCE = 2
"""Processes; each may take two gigabytes, so further calls wait."""

_threads = ThreadPoolExecutor(MOST_AT_ONCE, thread_name_prefix="graphrag-agent-tables")


async def run_job(job: TableJob, blobs: Sequence[bytes], *, seconds: float) -> TableAnswer:
    """The answer of a process that is gone when this returns. Raises ToolFailedError that says what to do."""
    run = _Run(job, blobs, seconds)
    try:
        return await asyncio.get_running_loop().run_in_executor(_threads, run.answer)
    finally:
        run.end()


class _Run:
    """One process from its start to its end; `end` comes from another thread."""

    def __init__(self, job: TableJob, blobs: Sequence[bytes], seconds: float) -> None:
        self._told = b"\n".join([job.model_dump_json().encode(), b"".join(blobs)])
        self._seconds = seconds
        self._lock = threading.Lock()
        self._process: WorkerProcess | None = None
        self._is_ended = False

    def answer(self) -> TableAnswer:
        process = WorkerProcess(COMMAND)
        with self._lock:  # not while it starts: `end` is called on an event loop
            self._process = process
            if self._is_ended:
                process.kill()
        began = time.monotonic()
        try:
            line = process.ask("job", io.BytesIO(self._told), len(self._told), seconds=self._seconds, seen=len)
            return TableAnswer.model_validate_json(line)
        except ParseError as error:
            if time.monotonic() - began >= self._seconds:
                raise ToolFailedError(
                    f"took more than {self._seconds:g} seconds; ask for fewer or smaller tables, or a simpler query"
                ) from error
            raise ToolFailedError(
                "broke down, out of memory most likely; aggregate, filter, or ask for fewer tables"
            ) from error
        except ValidationError as error:
            raise ToolFailedError("a file made its reader answer nonsense; leave that file out") from error
        finally:
            process.close()

    def end(self) -> None:
        with self._lock:
            self._is_ended = True
            if self._process:
                self._process.kill()
