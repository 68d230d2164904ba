"""Runs a `TableJob` in a process of its own, which is killed with its call. `run_job` is the entry."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence

from graphrag_agent.errors import ParseError, ToolFailedError
from graphrag_agent.own_threads import OwnThreads
from graphrag_agent.retrieval.ingestion.workers.process import LongAnswerError, SlowWorkerError, WorkerProcess
from graphrag_agent.tools._job import Job
from graphrag_agent.tools._table_answer import TableAnswer, TableJob, read_answer

COMMAND = (sys.executable, "-P", "-m", "graphrag_agent.tools._table_worker")
MOST_AT_ONCE = 2
"""Processes; each may take two gigabytes, so further calls wait."""

_threads = OwnThreads(MOST_AT_ONCE, "graphrag-agent-tables")


async def run_job(job: TableJob, blobs: Sequence[bytes], *, seconds: float) -> TableAnswer:
    """The answer of a process that is gone when this returns. Raises ToolFailedError that says what to do."""
    run = Job()
    try:
        return await _threads.run(_answer, run, job, blobs, seconds)
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
