"""Sync code over the background loop, after a fork too."""

import asyncio
import gc
import subprocess
import sys

import pytest

from graphrag_agent.sync_edge import finish_on_background_loop

FORKS = """
import os, sys, warnings
from graphrag_agent import sync_edge
from graphrag_agent.sync_edge import BackgroundTask, iterate_sync, run_sync
import asyncio, gc, signal

warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads, which is what this is about

async def answer():
    return os.getpid()

async def items():
    yield 1
    yield 2

assert run_sync(answer()) == os.getpid()
task = BackgroundTask(asyncio.sleep(60))
if IS_LOCKED:
    sync_edge._lock.acquire()
child = os.fork()
if child == 0:
    signal.alarm(10)
    assert run_sync(answer()) == os.getpid()
    assert list(iterate_sync(items())) == [1, 2]
    run_sync(task.stop())
    gc.collect()
    sys.exit(0)
if IS_LOCKED:
    sync_edge._lock.release()
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
signal.alarm(10)
assert run_sync(answer()) == os.getpid()
run_sync(task.stop())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="nothing forks there")
@pytest.mark.parametrize("is_locked", [False, True])
def test_a_forked_child_has_a_loop_of_its_own(is_locked: bool):
    code = FORKS.replace("IS_LOCKED", str(is_locked))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


async def test_a_cancelled_wait_for_work_leaves_nothing_to_be_logged():
    logged: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: logged.append(context["message"]))
    for _ in range(20):
        waiting = asyncio.ensure_future(finish_on_background_loop(asyncio.sleep(60)))
        await asyncio.sleep(0.001)
        waiting.cancel()
        await asyncio.wait([waiting])
        assert waiting.cancelled()
        del waiting
    gc.collect()
    assert logged == []
