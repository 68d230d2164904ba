"""A downloaded page as text, read by a process that is killed when it takes too long."""

from __future__ import annotations

import asyncio
import atexit
import io
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from graphrag_agent.errors import ParseError, ToolFailedError
from graphrag_agent.own_threads import OwnThreads
from graphrag_agent.retrieval.evidence_tags import storable
from graphrag_agent.retrieval.ingestion.workers.pool import WorkerPool
from graphrag_agent.retrieval.ingestion.workers.process import WorkerProcess, WornWorkerError
from graphrag_agent.tools._job import Job
from graphrag_agent.tools._page_program import HTML, MAX_LINKS, PDF
from graphrag_agent.tools._url_guard import MAX_URL_CHARACTERS
from graphrag_agent.tools._web_client import Download

MAX_PAGE_BYTES = 5_000_000
READ_SECONDS = 10.0
"""A page of 5 MB takes about two."""
_COMMAND = (sys.executable, "-P", "-m", "graphrag_agent.tools._page_program")
_WORKERS = 2
_MAX_TITLE = 300
_MAX_LINK_WORDS = 300
_threads = OwnThreads(_WORKERS, "graphrag-agent-pages")
_TEXTS = frozenset(
    {
        *("text/plain", "text/markdown", "text/x-markdown", "text/csv", "text/xml"),
        *("application/json", "application/ld+json", "application/xml", "application/rss+xml", "application/atom+xml"),
    }
)


@dataclass(frozen=True, slots=True)
class Page:
    """What a page says. All of it was written by a stranger."""

    title: str
    text: str
    links: Sequence[tuple[str, str]]
    """Text and URL, unchecked."""
    is_cut: bool
    """There was more text."""


class PageReader:
    """Reads downloaded pages; a process serves one tenant only, as a page may take it over."""

    def __init__(
        self, pool: WorkerPool, *, seconds: float = READ_SECONDS, max_characters: int = MAX_PAGE_BYTES
    ) -> None:
        self._pool = pool
        self._seconds = seconds
        self._max_characters = max_characters

    async def read(self, download: Download, tenant: str) -> Page:
        """The page's text. Raises ToolFailedError; when cancelled, the reading ends too."""
        _check_type(download)
        job = Job()
        try:
            return await _threads.run(self._read, job, download, tenant)
        except ParseError as error:
            reason = str(error).partition(";")[0]  # behind it stands what the owner of a file could do
            raise ToolFailedError(f"the page can't be read: {reason}; use another page") from error
        except asyncio.CancelledError:
            job.stop()
            raise

    def _read(self, job: Job, download: Download, tenant: str) -> Page:
        try:
            line = self._ask(job, download, tenant, self._seconds)
        except WornWorkerError as error:
            line = self._ask(job, download, tenant, error.seconds_left, fresh=True)
        return _checked(line, self._max_characters)

    def _ask(self, job: Job, download: Download, tenant: str, seconds: float, *, fresh: bool = False) -> bytes:
        about = {"media_type": download.media_type, "charset": download.charset, "url": download.address.url}
        with self._pool.lend(tenant, fresh=fresh) as worker:
            if job.stopped:
                raise ParseError("nobody waits for it any more")
            with job.killed_by(worker.kill):
                file, size = io.BytesIO(download.data), len(download.data)
                return worker.ask(json.dumps(about), file, size, seconds=seconds, seen=lambda _: None)


def _check_type(download: Download) -> None:
    kind = download.media_type
    if kind == PDF and download.is_cut:
        raise ToolFailedError("the PDF is too large to be read here; use another page")
    if kind not in HTML and kind not in _TEXTS and kind != PDF:
        shown = f"of type {kind[:60]!r}" if kind else "of no stated type"
        raise ToolFailedError(f"the answer is {shown}; only web pages, plain text, JSON, XML and PDF can be read")


def _checked(line: bytes, max_characters: int) -> Page:
    """The worker's answer; one that a page has taken over may say anything, and any amount."""
    try:
        told = json.loads(line)
        if "error" in told:
            reason = " ".join(str(told["error"])[:1000].partition(";")[0].split())[:200]
        else:
            title = " ".join(storable(str(told["title"])[: 10 * _MAX_TITLE]).split())[:_MAX_TITLE]
            pairs = [(str(words)[:_MAX_LINK_WORDS], str(url)) for words, url in told["links"][:MAX_LINKS]]
            links = [(storable(words), storable(url)) for words, url in pairs if len(url) <= MAX_URL_CHARACTERS]
            text = storable(str(told["text"]))
            return Page(title, text[:max_characters], links, is_cut=len(text) > max_characters)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ToolFailedError("the page can't be read: its parser answered nonsense; use another page") from error
    raise ToolFailedError(f"the page can't be read: {reason}; use another page")


page_pool = WorkerPool(_WORKERS, start=lambda: WorkerProcess(_COMMAND))
"""Of all fetches of this process."""
atexit.register(page_pool.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=page_pool.forget)
