"""The one place where sync code calls async code: a background event loop.

It also works where a loop already runs (Jupyter, a server's thread), and keeps context variables.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import queue
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import Future
from functools import update_wrapper
from typing import Any, Concatenate, ParamSpec, TypeVar

from graphrag_agent.finishing import wait_out

T = TypeVar("T")
S = TypeVar("S")
P = ParamSpec("P")

_THREAD_NAME = "graphrag-agent-loop"
_WAKE_SECONDS = 0.25
"""A signal that comes just before a thread begins to wait doesn't end the wait: Ctrl-C is looked for so often."""
_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None
_loops_of_parents: list[asyncio.AbstractEventLoop] = []
"""Kept in a forked child: if they were collected they would be closed, and the parent's with them."""


def run_sync(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run the coroutine on the background loop and wait for its result.

    A KeyboardInterrupt in the waiting thread cancels it.
    """
    _refuse_own_loop(coroutine)
    done: list[asyncio.Task[T]] = []
    ended = _End()

    def end(task: asyncio.Task[T]) -> None:
        done.append(task)
        ended.tell()

    cancel = _start(coroutine, end)
    try:
        ended.wait()
    except BaseException:
        cancel()
        raise
    if (error := _error_of(done[0])) is not None:
        raise error
    return done[0].result()


def sync_twin(method: Callable[Concatenate[S, P], Coroutine[Any, Any, T]]) -> Callable[Concatenate[S, P], T]:
    """An async method for sync code, with the same arguments.

    In the class: `search = sync_twin(asearch)`.
    """

    def twin(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return run_sync(method(self, *args, **kwargs))

    return _named(twin, method)


def iterator_twin(method: Callable[Concatenate[S, P], AsyncIterator[T]]) -> Callable[Concatenate[S, P], Iterator[T]]:
    """A method that gives an async iterator for sync code, with the same arguments."""

    def twin(self: S, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        return iterate_sync(method(self, *args, **kwargs))

    return _named(twin, method)


def _named(twin: Callable[P, T], method: Callable[..., Any]) -> Callable[P, T]:
    update_wrapper(twin, method)
    twin.__doc__ = f"`{method.__name__}` for sync code."
    twin.__name__ = method.__name__.removeprefix("a")
    twin.__qualname__ = method.__qualname__.replace(method.__name__, twin.__name__)
    return twin


class BackgroundTask:
    """A coroutine that runs on the background loop while its starter goes on."""

    def __init__(self, coroutine: Coroutine[Any, Any, None]) -> None:
        self._ended: Future[None] = Future()
        self._process = os.getpid()
        self._cancel = _start(coroutine, lambda task: self._ended.set_result(None))

    async def stop(self) -> None:
        """Cancel it and wait for its end, however it ended. Not to be called from within.

        Does nothing in a forked child, where it does not run.
        """
        if self._process != os.getpid():
            return
        self._cancel()
        await asyncio.shield(asyncio.wrap_future(self._ended))


def iterate_sync(items: AsyncIterator[T]) -> Iterator[T]:
    """The items one by one, all from one task on the background loop.

    Leaving the loop early cancels the task, and so the work behind it, and waits for its end.
    """
    pending: queue.SimpleQueue[tuple[bool, Any]] = queue.SimpleQueue()

    async def drain() -> None:
        async for item in items:
            pending.put((True, item))

    draining = drain()
    _refuse_own_loop(draining)
    ended = _End()

    def end(task: asyncio.Task[None]) -> None:
        pending.put((False, _error_of(task)))
        ended.tell()

    cancel = _start(draining, end)
    try:
        while True:
            try:
                is_item, value = pending.get(timeout=_WAKE_SECONDS)
            except queue.Empty:
                continue
            if is_item:
                yield value
            elif value is None:
                return
            else:
                raise value
    finally:
        cancel()
        if threading.current_thread().name != _THREAD_NAME:  # where the collector may close it, and would wait for ever
            ended.wait()


class _End:
    """That a task is over, told to one thread.

    A Ctrl-C may come at any step of a wait. In the waiting of a Future, an Event or a Condition, which are Python code,
    it can leave their lock held, and the loop's thread would wait for that for ever; a bare lock has no such step.
    """

    def __init__(self) -> None:
        self._told = threading.Lock()
        self._told.acquire()

    def tell(self) -> None:
        self._told.release()

    def wait(self) -> None:
        """Return at the end; not to be called again after that."""
        while not self._told.acquire(timeout=_WAKE_SECONDS):
            pass


async def on_background_loop(coroutine: Coroutine[Any, Any, T]) -> T:
    """The coroutine's result, from the background loop whatever loop waits for it here.

    For what belongs to one loop, as connections do, and must serve callers on any. Cancelling this cancels it.
    """
    loop = _background_loop()
    if loop is asyncio.get_running_loop():
        return await coroutine
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, loop))


async def finish_on_background_loop(coroutine: Coroutine[Any, Any, T]) -> T:
    """`on_background_loop` that, when it is cancelled, returns only after the coroutine's end."""
    done: Future[T] = Future()
    cancel = _start(coroutine, lambda task: _settle(done, task))
    waiting = asyncio.wrap_future(done)
    try:
        return await asyncio.shield(waiting)
    except asyncio.CancelledError:
        cancel()
        try:
            await wait_out(waiting)
        finally:
            if isinstance(done.exception(), asyncio.CancelledError):
                waiting.exception()  # as seen: else its collection is logged as an error that nobody looked at
        raise


def _start(coroutine: Coroutine[Any, Any, T], ended: Callable[[asyncio.Task[T]], None]) -> Callable[[], None]:
    """Start the coroutine in a copy of this context; returns what cancels it."""
    loop = _background_loop()
    context = contextvars.copy_context()
    tasks: list[asyncio.Task[T]] = []

    def start() -> None:
        tasks.append(loop.create_task(coroutine, context=context))
        tasks[0].add_done_callback(ended)

    loop.call_soon_threadsafe(start)

    def cancel() -> None:
        loop.call_soon_threadsafe(lambda: [task.cancel() for task in tasks])

    return cancel


def _refuse_own_loop(coroutine: Coroutine[Any, Any, Any]) -> None:
    if threading.current_thread().name == _THREAD_NAME:
        coroutine.close()
        raise RuntimeError("a sync method was called from async code; await its a- twin instead")


def _background_loop() -> asyncio.AbstractEventLoop:
    global _loop
    with _lock:
        if _loop is None or _loop.is_closed():
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name=_THREAD_NAME, daemon=True).start()
        return _loop


def _forget_loop() -> None:
    """In a forked child: the thread that runs the loop is its parent's, and may have held the lock."""
    global _lock, _loop
    if _loop is not None:
        _loops_of_parents.append(_loop)
    _lock, _loop = threading.Lock(), None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_loop)


def _settle(done: Future[T], task: asyncio.Task[T]) -> None:
    if (error := _error_of(task)) is not None:
        done.set_exception(error)
    else:
        done.set_result(task.result())


def _error_of(task: asyncio.Task[Any]) -> BaseException | None:
    return asyncio.CancelledError() if task.cancelled() else task.exception()
