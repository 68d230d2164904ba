"""Runs a `TableJob` in a process of its own, which is killed with its call. `run_job` is the entry."""

from __future__ import annotations

import asyncio
import io
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from graphrag_agent.errors import ParseError, ToolFailedError
from graphrag_agent.retrieval.ingestion.workers.process import LongAnswerError, SlowWorkerError, WorkerProcess
from graphrag_agent.tools._job import Job
from graphrag_agent.tools._table_answer import TableAnswer, TableJob, read_answer

COMMAND = (sys.executable, "-P", "-m", "graphrag_agent.tools._table_worker")
MOST_AT_ONCE = 2
"""Processes; each may take two gigabytes, so further calls wait."""

_threads = ThreadPoolExecutor(MOST_AT_ONCE, thread_name_prefix="graphrag-agent-tables")
if hasattr(os, "register_at_fork"):  # a forked child has none of the threads, but believes it does
    os.register_at_fork(after_in_child=lambda: ThreadPoolExecutor.__init__(_threads, MOST_AT_ONCE))


async def run_job(job: TableJob, blobs: Sequence[bytes], *, seconds: float) -> TableAnswer:
    """The answer of a process that is gone when this returns. Raises ToolFailedError that says what to do."""
    run = Job()
    try:
        return await asyncio.get_running_loop().run_in_executor(_threads, _answer, run, job, blobs, seconds)
    finally:
        run.stop()


def _answer(run: Job, job: TableJob, blobs: Sequence[bytes], seconds: float) -> TableAnswer:
    told, data = job.model_dump_json(), b"".join(blobs)  # not on the event loop
    process = WorkerProcess(COMMAND)
    try:
        with run.killed_by(process.kill):
            line = process.ask(told, io.BytesIO(data), len(data), seconds=seconds, seen=len)
        return read_answer(line, len(blobs))
    except SlowWorkerError as error:
        raise ToolFailedError(
            f"took more than {seconds:g} seconds; ask for fewer or smaller tables, or a simpler query"
        ) from error
    except LongAnswerError as error:
        raise ToolFailedError("there is more to tell than can be read; ask for fewer tables or columns") from error
    except ParseError as error:
        raise ToolFailedError(
            "broke down, out of memory most likely; aggregate, filter, or ask for fewer tables"
        ) from error
    except ValueError as error:
        raise ToolFailedError("a file made its reader answer nonsense; leave that file out") from error
    finally:
        process.close()
