"""One process that reads the documents of other people, apart from ours: limited in time and memory, and replaceable.

It starts at the first document, is used again for the next, and is killed when a document takes too long.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Protocol

from graphrag_agent.errors import ParseError

PARSE_SECONDS = 30.0

_PROGRAM = Path(__file__).with_name("extraction_process.py")
_KEPT_VARIABLES = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "LANG", "SYSTEMROOT", "TMPDIR", "TEMP", "TMP")
"""All that the process gets of our environment; it needs no key."""


class Extractor(Protocol):
    """Reads one document into the answer that `extraction_process` describes."""

    def __call__(self, suffix: str, data: bytes) -> dict[str, Any]:
        """Raises ParseError with the reason and the remedy."""
        ...


class ParserProcess:
    """A worker process; one document at a time, from any thread."""

    def __init__(self, program: Path = _PROGRAM, *, timeout_seconds: float = PARSE_SECONDS) -> None:
        self._program = program
        self._timeout_seconds = timeout_seconds
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = os.getpid()

    def __call__(self, suffix: str, data: bytes) -> dict[str, Any]:
        """The document's text. Raises ParseError; a process that hung or died is replaced at the next call."""
        with self._lock:
            line, timed_out = self._ask(suffix, data)
        if timed_out:
            limit = f"{self._timeout_seconds:g} seconds"
            raise ParseError(f"took more than {limit} to read; split it, or save it in another format")
        if not line.endswith(b"\n"):
            raise ParseError("its parser broke down (out of 1 GB of memory, or damaged); split it, or save it anew")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise ParseError(answer["error"])
        return answer

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is None or self._owner != os.getpid():  # a forked copy must not end its parent's
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe:
                _close_quietly(pipe)

    def _ask(self, suffix: str, data: bytes) -> tuple[bytes, bool]:
        """The answer's line, torn if the process died, and whether it was killed for its time."""
        process = self._running()
        assert process.stdin and process.stdout  # noqa: S101  # both are pipes
        timed_out = threading.Event()

        def end() -> None:
            timed_out.set()
            process.kill()

        timer = threading.Timer(self._timeout_seconds, end)
        timer.daemon = True
        timer.start()
        line = b""
        try:
            process.stdin.write(json.dumps({"suffix": suffix, "size": len(data)}).encode() + b"\n" + data)
            process.stdin.flush()
            line = process.stdout.readline()
        except OSError:  # it died while we wrote
            pass
        finally:
            timer.cancel()
            if not line.endswith(b"\n"):
                self.close()
        return line, timed_out.is_set() and not line.endswith(b"\n")

    def _running(self) -> subprocess.Popen[bytes]:
        if self._owner != os.getpid():  # forked: the process answers our parent, and we would mix up our documents
            self._process, self._owner = None, os.getpid()
        if self._process is not None and self._process.poll() is not None:
            self.close()
        if self._process is None:
            self._process = _start(self._program)
        return self._process


def _start(program: Path) -> subprocess.Popen[bytes]:
    environment = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    environment["PYTHONPATH"] = os.pathsep.join(entry for entry in sys.path if entry)
    environment["MALLOC_ARENA_MAX"] = "2"  # else each thread reserves addresses that the memory limit counts
    return subprocess.Popen(  # noqa: S603  # our own interpreter and program
        # -P: the program's folder holds modules with the names of the standard library's
        [sys.executable, "-P", str(program)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
    )


def _close_quietly(pipe: Any) -> None:
    try:
        pipe.close()
    except OSError:  # what was not yet sent has nobody to go to
        return


extract_apart = ParserProcess()
"""The process that the parsers share."""
atexit.register(extract_apart.close)
