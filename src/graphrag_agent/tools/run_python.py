"""The tool that runs the model's Python where it can do no harm."""

from __future__ import annotations

import asyncio
import base64
import hashlib
from concurrent.futures import Future
from functools import partial
from typing import Annotated, Any, Literal

from langchain_core.tools import InjectedToolArg, StructuredTool
from pydantic import Field

from graphrag_agent.citations import Evidence
from graphrag_agent.context import TOP_K_MAX
from graphrag_agent.documents import Hit
from graphrag_agent.errors import GraphragError, ToolArgumentError, ToolFailedError
from graphrag_agent.own_threads import OwnThreads
from graphrag_agent.retrieval.evidence_tags import storable
from graphrag_agent.retrieval.scope import Scope
from graphrag_agent.retrieval.search.options import SearchChoices
from graphrag_agent.tools._job import Job
from graphrag_agent.tools._python_monty import MontyInterpreter
from graphrag_agent.tools._python_runs import Interpreter, Ran, SearchRefused
from graphrag_agent.tools._python_sandbox import SandboxInterpreter
from graphrag_agent.tools.evidence_message import evidence_of, render_evidence
from graphrag_agent.tools.knowledge_search import Searchable
from graphrag_agent.tools.made_evidence import made_evidence
from graphrag_agent.tools.spec import ToolSpec

MAX_CODE_CHARACTERS = 20_000

SHOWN_CODE_CHARACTERS = 1_500
"""Of the code in the evidence: who reads a cited figure wants to see how it was worked out."""

MAX_SEARCHES = 20
"""Of one run: a loop over a list of names, not a crawl through the knowledge base."""

MAX_PASSAGES = 8
"""Passages found inside the code that the message shows, so that they can be cited."""

MAX_HEADING_CHARACTERS = 80

_WAIT_SECONDS = 12.0
"""Until an interpreter is free; the loop calls once more, so twice as much must fit into the tool's own limit."""

_SLACK_SECONDS = 5.0
"""Between the end of a run, its wait included, and the tool's own limit, so that the model gets the text from here."""

_DESCRIPTION = """\
Run Python and get back what it prints and the value of its last line.

Use it for whatever must be computed, counted, sorted or compared: never work out a figure in your head. Don't use it to
look something up, or to write text. Each call starts from nothing: no name of an earlier call is there. `search(query,
top_k=5)` may be called inside, without await: a list of dicts with id, title, heading, page, source and text, from the
same documents as knowledge_search, {searches} calls at most. Take the figures for the code from the evidence. Print
each result with its name and unit, as in print("days of leave in all:", total), and cite it by the id that comes back.
{about}"""


def build_run_python(
    *,
    interpreter: Literal["monty", "sandbox"] | Interpreter = "monty",
    knowledge: Searchable | None = None,
) -> ToolSpec:
    """A `run_python` in Monty (extra `tools`), or with numpy, pandas and sympy behind a sandbox (extra `sandbox`).

    `knowledge` is what `search` inside the code looks in, under the scope of the request. Raises MissingExtraError, and
    SettingsError where this machine can't hold the sandbox.
    """
    runs = _resolve_interpreter(interpreter)
    threads = OwnThreads(runs.max_runs, "graphrag-python")

    async def run_python(
        code: Annotated[
            str, Field(min_length=1, max_length=MAX_CODE_CHARACTERS, description="Python; its last line is the result")
        ],
        scope: Annotated[Any, InjectedToolArg],
        rerank: Annotated[Any, InjectedToolArg] = None,
        most_hits: Annotated[Any, InjectedToolArg] = None,
    ) -> tuple[str, dict[str, Any]]:
        if "\0" in code:
            raise ToolArgumentError("the code has a NUL character in it; write '\\x00' where one is meant")
        searches = None if knowledge is None else _Searches(knowledge, scope, rerank=rerank, most_hits=most_hits)
        ran = await _run_in_thread(threads, runs, code, searches)
        found = searches.found if searches else []
        evidence = [_evidence(code, ran), *evidence_of(found[:MAX_PASSAGES])]
        content, artifact = render_evidence(evidence, note=_note(ran, len(found) - MAX_PASSAGES))
        return content, {**artifact, **_files(ran)}

    tool = StructuredTool.from_function(
        coroutine=run_python,
        name="run_python",
        description=_DESCRIPTION.format(searches=MAX_SEARCHES, about=runs.about),
        response_format="content_and_artifact",
    )
    seconds = runs.wall_seconds + _SLACK_SECONDS
    return ToolSpec(tool, family="computing", side_effect_free=True, timeout_seconds=seconds)


class _Searches:
    """The searches of one run: as the request allows, so many and no more; what they found is kept."""

    def __init__(self, knowledge: Searchable, scope: Scope, *, rerank: Any, most_hits: int | None) -> None:
        self._knowledge = knowledge
        self._scope = scope
        self._most_hits = TOP_K_MAX if most_hits is None else most_hits
        self._choices: SearchChoices = {"rerank": False} if rerank is False else {}
        self._count = 0
        self._hits: dict[str, Hit] = {}

    @property
    def found(self) -> list[Hit]:
        """Every passage once, in the order in which they came."""
        return list(self._hits.values())

    async def search(self, query: str, top_k: int) -> list[dict[str, Any]]:
        """What the code gets. Raises SearchRefused."""
        self._count += 1
        if self._count > MAX_SEARCHES:
            raise SearchRefused(f"no more than {MAX_SEARCHES} searches in one run; go on with what was found")
        if not query.strip() or not 1 <= top_k <= TOP_K_MAX:
            raise SearchRefused(f"search takes words to look for and a top_k from 1 to {TOP_K_MAX}")
        if not self._most_hits:
            raise SearchRefused("this request may not search; go on without")
        most = min(top_k, self._most_hits)
        try:
            result = await self._knowledge.asearch(query, scope=self._scope, top_k=most, **self._choices)
        except GraphragError as error:
            raise SearchRefused(f"the search failed: {error}") from error
        for hit in result.hits:
            self._hits.setdefault(hit.chunk.id, hit)
        return [_as_dict(item) for item in evidence_of(result.hits)]


async def _run_in_thread(threads: OwnThreads, runs: Interpreter, code: str, searches: _Searches | None) -> Ran:
    """What the run came to; whoever cancels this, or the wall clock, ends the run."""
    loop, job, asked = asyncio.get_running_loop(), Job(), list[Future[Any]]()
    has_begun = asyncio.Event()

    def search(searches: _Searches, query: str, top_k: int) -> list[dict[str, Any]]:
        future = asyncio.run_coroutine_threadsafe(searches.search(query, top_k), loop)
        asked[:] = [future]
        if job.stopped:  # between the two lines above
            future.cancel()
        return future.result(runs.wall_seconds)

    def run() -> Ran:
        if job.stopped:
            raise ToolFailedError("the run was ended before it began")
        loop.call_soon_threadsafe(has_begun.set)
        return runs.run(code, None if searches is None else partial(search, searches), job)

    running = threads.begin(run)
    try:
        async with asyncio.timeout(runs.wall_seconds):
            async with asyncio.timeout(_WAIT_SECONDS):
                await has_begun.wait()
            return await asyncio.shield(running)
    except TimeoutError:
        if not has_begun.is_set():
            raise ToolFailedError("all interpreters are busy with other calls; call again", retryable=True) from None
        raise ToolArgumentError(f"No result within {runs.wall_seconds:g} s. Make the code do less.") from None
    finally:
        if not running.done():
            _end(job, asked, running)


def _end(job: Job, asked: list[Future[Any]], running: asyncio.Future[Ran]) -> None:
    # nobody waits for its result any more, and its error is no news
    running.add_done_callback(lambda done: done.cancelled() or done.exception())
    job.stop()
    for future in asked:
        future.cancel()


def _resolve_interpreter(interpreter: Literal["monty", "sandbox"] | Interpreter) -> Interpreter:
    if interpreter == "monty":
        return MontyInterpreter()
    return SandboxInterpreter() if interpreter == "sandbox" else interpreter


def _evidence(code: str, ran: Ran) -> Evidence:
    lines = [line.strip() for line in code.splitlines() if line.strip()]
    shown = code.strip()
    if len(shown) > SHOWN_CODE_CHARACTERS:
        shown = f"{shown[:SHOWN_CODE_CHARACTERS]}…"
    parts = {"Code": shown, "Printed": ran.printed.rstrip("\n"), "Result": ran.result}
    text = "\n".join(f"{name}:\n{part}" for name, part in parts.items() if part)
    return made_evidence(
        f"python:{hashlib.blake2b(code.encode(), digest_size=16).hexdigest()}",
        title="Python",
        source="computed",
        heading=(lines or [""])[0][:MAX_HEADING_CHARACTERS],
        text=storable(text),
        is_computed=True,
    )


def _note(ran: Ran, more_found: int) -> str:
    said = []
    if not ran.printed and not ran.result:
        said.append("The code printed nothing and its last line has no value: print what you want to know.")
    if more_found > 0:
        passages = "passage found by the code is" if more_found == 1 else "passages found by the code are"
        said.append(f"{more_found} more {passages} not shown; to cite one, search for it.")
    for file in ran.files:
        said.append(f"The code saved {' '.join(storable(file.name).split())} ({len(file.content)} bytes).")
    if ran.left_out:
        files = "file is" if ran.left_out == 1 else "files are"
        said.append(f"{ran.left_out} more .png {files} left out: too many, too large, or no picture.")
    return " ".join(said)


def _files(ran: Ran) -> dict[str, Any]:
    files = [
        {"name": file.name, "mime": "image/png", "base64": base64.b64encode(file.content).decode()}
        for file in ran.files
    ]
    return {"files": files} if files else {}


def _as_dict(item: Evidence) -> dict[str, Any]:
    names = ("id", "title", "heading", "page", "source", "score", "text")
    told = {name: getattr(item, name) for name in names}
    return {name: storable(value) if isinstance(value, str) else value for name, value in told.items()}
