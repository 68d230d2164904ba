"""Python in Monty, an interpreter with no operating system under it, in a process of its own for each run."""

from __future__ import annotations

import os
import signal
import threading
from functools import partial
from importlib.util import find_spec
from typing import Any

from graphrag_agent.errors import MissingExtraError, ToolFailedError
from graphrag_agent.tools._job import Job
from graphrag_agent.tools._python_runs import (
    COMPUTE_SECONDS,
    MAX_CALLS_OUT,
    MOST_PRINTED,
    PRINTED_CHARACTERS,
    TOO_MANY_CALLS,
    Ran,
    Search,
    SearchRefused,
    code_error,
    cut,
    render_value,
    shown_printed,
)

MEMORY_BYTES = 128 * 2**20
"""Monty's own limit, which its allocator holds too."""

MAX_RECURSION = 300
"""Deep enough for a recursive sum; the default of 1000 comes near the end of the worker's stack."""

MAX_RUNS = 4

_GONE = "The code was ended after {seconds:g} s of computing. Make it do less, or answer without it."

_FORKED = (
    "Python can't be run in this process, a forked copy of one that has run some; answer without it. Whoever runs the "
    "agent must fork before the first run, or spawn"
)
_first_process: dict[str, int] = {}
"""The id of the process that opened a pool. Monty's threads are gone in a forked copy of it: every run would hang."""


class MontyInterpreter:
    """A pool of Monty's workers; each takes one run and is then replaced, so that no run meets what another left."""

    max_runs = MAX_RUNS
    wall_seconds = 25.0
    about = (
        "The interpreter is Monty, a part of Python: numbers, text, lists, dicts, functions, plain classes, f-strings, "
        "comprehensions, math, json, re, datetime, decimal, collections, itertools, functools, random, csv, "
        "dataclasses, operator and bisect are there. There is no yield, no del, no class inheritance, no statistics, "
        "fractions, heapq, enum or string, no numpy or pandas, no files and no network."
    )

    def __init__(self, *, compute_seconds: float = COMPUTE_SECONDS) -> None:
        if find_spec("pydantic_monty") is None:
            raise MissingExtraError("run_python", "tools")
        self._seconds = compute_seconds
        self._lock = threading.Lock()
        self._pool: Any = None

    def run(self, code: str, search: Search | None, job: Job) -> Ran:
        # the sync face, in threads: the async one aborted the whole process at exit in 6 of 40 tries (1.4.0)
        import pydantic_monty as monty

        printed = _Printed()
        limits: monty.ResourceLimits = {
            "max_feed_duration_secs": self._seconds,
            "max_memory": MEMORY_BYTES,
            "max_recursion_depth": MAX_RECURSION,
            "max_suspensions": MAX_CALLS_OUT,
        }
        try:
            with self._workers().checkout(limits=limits, os_policy={"sleep": "zero"}) as session:
                kill = partial(os.kill, session.worker_pid, getattr(signal, "SIGKILL", signal.SIGTERM))
                with job.killed_by(kill):
                    step = session.feed_start(code, print_callback=printed, external_lookup={"search": _answered_below})
                    while not isinstance(step, monty.MontyComplete):
                        step = _answer(step, search)
                    value = step.output
        except monty.MontyCrashedError as error:
            # the big-int loop, the native call: what the limits inside could not stop
            raise code_error(_GONE.format(seconds=self._seconds) if error.timed_out else str(error), "") from None
        except (monty.MontyRuntimeError, monty.MontySyntaxError) as error:
            raise code_error(_traceback(error, printed), printed.shown) from None
        except monty.MontyError as error:
            raise ToolFailedError(f"the interpreter failed: {error}") from error
        return Ran(printed.shown, "" if value is None else render_value(value))

    def _workers(self) -> Any:
        """The pool, opened at the first run and never closed: its workers end with this process."""
        import pydantic_monty as monty

        if _first_process.setdefault("id", os.getpid()) != os.getpid():
            raise ToolFailedError(_FORKED)
        with self._lock:
            if self._pool is None:
                self._pool = monty.Monty(
                    max_processes=MAX_RUNS, max_checkouts_per_worker=1, request_timeout=self._seconds + 2
                ).__enter__()
            return self._pool


class _Printed:
    """Takes what the code prints; keeps the beginning, counts the rest, ends a flood."""

    def __init__(self) -> None:
        self._text = ""
        self.count = 0

    def __call__(self, stream: str, text: str) -> None:
        self.count += len(text)
        self._text += text[: max(0, PRINTED_CHARACTERS - len(self._text))]
        if self.count > MOST_PRINTED:
            raise OverflowError

    @property
    def shown(self) -> str:
        return shown_printed(self._text, self.count)


def _answer(step: Any, search: Search | None) -> Any:
    """The next step: a search is made, a name is unknown, and the operating system isn't there."""
    if hasattr(step, "variable_name"):
        return step.resume_auto()
    if step.is_os_function:
        return step.resume_not_handled()
    if step.function_name != "search":
        name = cut(str(step.function_name), 100, "of a name")
        return step.resume({"exc_type": "NameError", "message": f"name {name!r} is not defined"})
    if search is None:
        return step.resume({"exc_type": "RuntimeError", "message": "there is no knowledge base to search"})
    try:
        found = search(*read_search(step.args, step.kwargs))
    except SearchRefused as error:
        return step.resume({"exc_type": "RuntimeError", "message": str(error)})
    return step.resume({"return_value": found})


def read_search(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str, int]:
    """`query` and `top_k` of a call. Raises SearchRefused: the code may pass anything."""
    given = {**dict(zip(("query", "top_k"), args, strict=False)), **kwargs}
    query, top_k = given.get("query"), given.get("top_k", 5)
    if len(args) > 2 or not given.keys() <= {"query", "top_k"} or not isinstance(query, str):
        raise SearchRefused("call it as search('what to look for', top_k=5)")
    if not isinstance(top_k, int) or isinstance(top_k, bool):
        raise SearchRefused("top_k must be a whole number")
    return query, top_k


def _answered_below(*_: Any, **__: Any) -> None:
    """Only says that `search` is a function; its calls come as steps."""


def _traceback(error: Any, printed: _Printed) -> str:
    if printed.count > MOST_PRINTED:
        return f"The code printed more than {MOST_PRINTED} characters. Print less."
    text: str = error.display()
    text = text.replace(f"suspension limit {MAX_CALLS_OUT} exceeded", TOO_MANY_CALLS)
    return text.replace('File "<python-input-0>", ', "")
