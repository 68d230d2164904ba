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


INTERRUPTS = """
import asyncio, sys, threading, warnings
from concurrent.futures import _base
from contextlib import closing
from graphrag_agent import sync_edge
from graphrag_agent.sync_edge import iterate_sync, run_sync

warnings.simplefilter("ignore", RuntimeWarning)  # of what was interrupted before it was begun
sync_edge._WAKE_SECONDS = 0.001  # so that every step of a wait is among the first

async def ticks():
    while True:
        yield 1
        await asyncio.sleep(0.01)

async def answer():
    return 42

def call():
    run_sync(asyncio.sleep(0.02))

def iterate():
    with closing(iterate_sync(ticks())) as items:
        next(items)

def interrupted(wait, at):
    left = at
    def trace(frame, event, argument):
        nonlocal left
        if frame.f_code.co_filename not in PLACES or frame.f_code.co_name in ("_start", "_background_loop"):
            return None  # there a tracer raises between steps that no signal parts
        left -= 1
        if left == 0:
            raise KeyboardInterrupt
        return trace
    sys.settrace(trace)
    try:
        wait()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(None)
    return False

PLACES = {sync_edge.__file__, threading.__file__, _base.__file__}
assert run_sync(answer()) == 42
hits = 0
for at in range(1, 200):
    hits += interrupted(WAIT, at)
    assert run_sync(answer()) == 42
assert hits > 10, hits
"""


@pytest.mark.parametrize("wait", ["call", "iterate"])
def test_whenever_an_interrupt_comes_the_loop_goes_on(wait: str):
    """A lock that it left behind would be waited for by the loop's own thread, and then by everybody for ever."""
    code = INTERRUPTS.replace("WAIT", wait)
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
