"""Whether this machine can hold the sandbox of `run_python`; tests that need it are skipped with the reason."""

from __future__ import annotations

from functools import cache

from graphrag_agent.errors import GraphragError
from graphrag_agent.tools._job import Job
from graphrag_agent.tools._python_sandbox import SandboxInterpreter


@cache
def sandbox_problem() -> str:
    """Why it can't; empty where it can."""
    try:
        SandboxInterpreter().run("1", None, Job())
    except GraphragError as error:
        return str(error)
    return ""
