"""The one place where sync code calls async code: a background event loop.

It also works where a loop already runs (Jupyter, a server's thread), and keeps context variables.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")

_THREAD_NAME = "graphrag-agent-loop"
_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None


def run_sync(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run the coroutine on the background loop and wait for its result."""
    loop = _background_loop()
    if threading.current_thread().name == _THREAD_NAME:
        coroutine.close()
        raise RuntimeError("a sync method was called from async code of the package; await its a- twin instead")
    done: Future[T] = Future()
    context = contextvars.copy_context()
    tasks: list[asyncio.Task[T]] = []

    def start() -> None:
        task = loop.create_task(coroutine, context=context)
        tasks.append(task)
        task.add_done_callback(lambda ended: _settle(done, ended))

    loop.call_soon_threadsafe(start)
    try:
        return done.result()
    except BaseException:
        if not done.done():  # the waiting thread was interrupted: stop the work too
            loop.call_soon_threadsafe(lambda: [task.cancel() for task in tasks])
        raise


def _background_loop() -> asyncio.AbstractEventLoop:
    global _loop
    with _lock:
        if _loop is None or _loop.is_closed():
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name=_THREAD_NAME, daemon=True).start()
        return _loop


def _settle(done: Future[T], task: asyncio.Task[T]) -> None:
    if task.cancelled():
        done.cancel()
        done.set_running_or_notify_cancel()
    elif error := task.exception():
        done.set_exception(error)
    else:
        done.set_result(task.result())
