"""A downloaded page as text, read by a process that is killed when it takes too long."""

from __future__ import annotations

import asyncio
import atexit
import io
import json
import os
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass

from graphrag_agent.errors import ParseError, ToolFailedError
from graphrag_agent.retrieval.ingestion.workers.pool import WorkerPool
from graphrag_agent.retrieval.ingestion.workers.process import WorkerProcess, WornWorkerError
from graphrag_agent.tools._page_program import HTML, PDF
from graphrag_agent.tools._web_client import Download

READ_SECONDS = 10.0
"""A page of 5 MB takes about two."""
_COMMAND = (sys.executable, "-P", "-m", "graphrag_agent.tools._page_program")
_WORKERS = 2
_MAX_TITLE = 300
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


class PageReader:
    """Reads downloaded pages; a process serves one tenant only, as a page may take it over."""

    def __init__(self, pool: WorkerPool, *, seconds: float = READ_SECONDS) -> None:
        self._pool = pool
        self._seconds = seconds

    async def read(self, download: Download, tenant: str) -> Page:
        """The page's text. Raises ToolFailedError; when cancelled, the reading ends too."""
        _check_type(download)
        reading = _Reading(self._pool, download, tenant, self._seconds)
        try:
            line = await asyncio.to_thread(reading.run)
        except ParseError as error:
            reason = str(error).partition(";")[0]  # behind it stands what the owner of a file could do
            raise ToolFailedError(f"the page can't be read: {reason}; use another page") from error
        except asyncio.CancelledError:
            reading.stop()
            raise
        return _checked(line)


class _Reading:
    """One page with one worker at a time, from a thread that another one may stop."""

    def __init__(self, pool: WorkerPool, download: Download, tenant: str, seconds: float) -> None:
        about = {"media_type": download.media_type, "charset": download.charset, "url": download.address.url}
        self._name = json.dumps(about)
        self._data = download.data
        self._pool, self._tenant, self._seconds = pool, tenant, seconds
        self._lock = threading.Lock()
        self._worker: WorkerProcess | None = None
        self._is_stopped = False

    def run(self) -> bytes:
        try:
            return self._ask(self._seconds)
        except WornWorkerError as error:
            return self._ask(error.seconds_left, fresh=True)

    def stop(self) -> None:
        with self._lock:
            self._is_stopped = True
            if self._worker is not None:
                self._worker.kill()

    def _ask(self, seconds: float, *, fresh: bool = False) -> bytes:
        with self._pool.lend(self._tenant, fresh=fresh) as worker:
            self._lend(worker)
            try:
                return worker.ask(
                    self._name, io.BytesIO(self._data), len(self._data), seconds=seconds, seen=lambda _: None
                )
            finally:
                self._lend(None)

    def _lend(self, worker: WorkerProcess | None) -> None:
        with self._lock:
            if worker is not None and self._is_stopped:
                raise ParseError("nobody waits for it any more")
            self._worker = worker


def _check_type(download: Download) -> None:
    kind = download.media_type
    if kind == PDF and download.is_cut:
        raise ToolFailedError("the PDF is too large to be read here; use another page")
    if kind not in HTML and kind not in _TEXTS and kind != PDF:
        shown = f"of type {kind[:60]!r}" if kind else "of no stated type"
        raise ToolFailedError(f"the answer is {shown}; only web pages, plain text, JSON, XML and PDF can be read")


def _checked(line: bytes) -> Page:
    """The worker's answer; one that a page has taken over may say anything."""
    try:
        told = json.loads(line)
        if "error" in told:
            reason = " ".join(str(told["error"]).partition(";")[0].split())[:200]
        else:
            title = " ".join(_storable(told["title"]).split())[:_MAX_TITLE]
            links = [(_storable(words), _storable(url)) for words, url in told["links"]]
            return Page(title, _storable(told["text"]), links)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ToolFailedError("the page can't be read: its parser answered nonsense; use another page") from error
    raise ToolFailedError(f"the page can't be read: {reason}; use another page")


def _storable(value: object) -> str:
    """Text that a database takes: without NUL and half surrogates."""
    return str(value).replace("\0", "").encode("utf-8", "replace").decode()


page_pool = WorkerPool(_WORKERS, start=lambda: WorkerProcess(_COMMAND))
"""Of all fetches of this process."""
atexit.register(page_pool.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=page_pool.forget)
