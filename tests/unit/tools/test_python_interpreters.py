"""Each interpreter by itself: odd text as code, and a sandbox that does not start."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_agent.errors import ToolArgumentError, ToolFailedError
from graphrag_agent.retrieval.scope import Scope
from graphrag_agent.tools import _python_sandbox
from graphrag_agent.tools._job import Job
from graphrag_agent.tools._python_monty import MontyInterpreter, read_search
from graphrag_agent.tools._python_runs import Ran, Search, SearchRefused
from graphrag_agent.tools._python_sandbox import SandboxInterpreter
from graphrag_agent.tools.run_python import build_run_python
from graphrag_agent.tools.spec import ToolSpec
from tests.python_sandbox import sandbox_problem

pytest.importorskip("pydantic_monty")
SCOPE = Scope("default")
MONTY = MontyInterpreter(compute_seconds=1)
PIECES = st.sampled_from(
    ["x", " = ", "(", ")", "[", "]", "\n", "  ", "lambda ", "1", "'", "f'{", "}", ":", "*", "@", "if "]
)


@settings(max_examples=200)
@given(st.text(max_size=60) | st.lists(PIECES, max_size=30).map("".join))
def test_any_text_runs_or_is_an_error_that_the_model_can_read(code: str) -> None:
    try:
        ran = MONTY.run(code, None, Job())
    except ToolArgumentError as error:
        assert str(error).startswith("The code failed; mend it and call again.\n")
    else:
        assert isinstance(ran.result, str)


@given(st.lists(st.integers() | st.text(max_size=5), max_size=4), st.dictionaries(st.text(max_size=6), st.integers()))
def test_arguments_of_a_search_are_a_text_and_a_number_or_refused(args: list[Any], kwargs: dict[str, Any]) -> None:
    try:
        query, top_k = read_search(tuple(args), kwargs)
    except SearchRefused:
        return
    assert isinstance(query, str) and type(top_k) is int


def test_code_that_reads_names_without_calling_them_gets_python_s_answer() -> None:
    with pytest.raises(ToolArgumentError, match="NameError: name 'nosuch' is not defined"):
        MONTY.run("nosuch + 1", None, Job())
    assert MONTY.run("find = search\nfind('a')", lambda query, top_k: [{"id": query}], Job()).result == "[{'id': 'a'}]"


def test_a_job_that_was_stopped_before_its_run_ends_at_once() -> None:
    job = Job()
    job.stop()
    with pytest.raises(ToolArgumentError):
        MONTY.run("while True: pass", None, job)


def test_waiting_takes_no_time() -> None:
    assert MONTY.run("import time\ntime.sleep(10**6)\n'woke'", None, Job()).result == "'woke'"


@pytest.mark.skipif(bool(sandbox_problem()), reason=sandbox_problem() or "there")
def test_a_sandbox_that_does_not_start_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SandboxInterpreter, "_walls", lambda *_: '{"no": "walls"}')
    with pytest.raises(ToolFailedError, match=r"the sandbox did not start: (.|\n)*KeyError"):
        SandboxInterpreter().run("1", None, Job())


def test_a_launcher_that_has_to_be_killed_is_gone_before_its_outcome_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_python_sandbox, "_GRACE_SECONDS", 0.1)
    deaf = "import time; from signal import *; signal(SIGTERM, SIG_IGN); print('deaf', flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", deaf], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as launcher:
        assert launcher.stdout is not None and launcher.stdout.readline() == b"deaf\n"
        _python_sandbox._end(launcher)
        with pytest.raises(ToolArgumentError, match="It was ended in the middle"):
            _python_sandbox._read({}, launcher, Path())


class Echo:
    """An interpreter without a process."""

    max_runs, about, wall_seconds = 1, "", 5.0

    def run(self, code: str, search: Search | None, job: Job) -> Ran:
        return Ran("", code)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_copy_has_threads_of_its_own_and_says_where_it_can_not_run_anything() -> None:
    """As workers of a server that are forked from a process which has answered questions."""

    def result(spec: ToolSpec) -> str:
        try:
            return str(asyncio.run(spec.tool.coroutine(code="1+1", scope=SCOPE))[0])  # type: ignore[attr-defined]
        except ToolFailedError as error:
            return str(error)

    echo, monty = build_run_python(interpreter=Echo()), build_run_python()
    assert "Result:\n1+1" in result(echo) and "Result:\n2" in result(monty)
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        is_right = "Result:\n1+1" in result(echo) and "a forked copy of one that has run some" in result(monty)
        os._exit(0 if is_right else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert "Result:\n2" in result(monty)
