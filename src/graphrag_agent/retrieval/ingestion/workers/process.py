"""One worker process: takes a file, answers with a line, and is killed when it takes too long or says too much."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import BinaryIO

from graphrag_agent.errors import ParseError
from graphrag_agent.retrieval.ingestion.workers.limits import MAX_ANSWER_BYTES

COMMAND = (sys.executable, "-P", "-m", "graphrag_agent.retrieval.ingestion.workers.program")
_KEPT_VARIABLES = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "LANG", "SYSTEMROOT", "TMPDIR", "TEMP", "TMP")
"""All that the process gets of our environment; it needs no key."""
_BLOCK = 1 << 20


class SlowWorkerError(ParseError):
    """The process was killed because it took too long."""


class LongAnswerError(ParseError):
    """The process was ended because its answer had no end."""


class WornWorkerError(ParseError):
    """The process ended without an answer, and had read other files before, which may be at fault."""

    def __init__(self, reason: str, seconds_left: float) -> None:
        super().__init__(reason)
        self.seconds_left = seconds_left


class WorkerProcess:
    """A process that has started; it reads one file at a time."""

    def __init__(self, command: Sequence[str] = COMMAND) -> None:
        self._is_fresh = True
        self._process = subprocess.Popen(  # noqa: S603  # our own interpreter and program
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=_environment(),
            bufsize=0,
            process_group=0,  # Ctrl-C is for us; we end our workers ourselves
        )
        assert self._process.stdin and self._process.stdout  # noqa: S101  # both are pipes
        self._requests, self._pipe = self._process.stdin, self._process.stdout
        self._answers = io.BufferedReader(self._pipe)  # type: ignore[type-var]  # raw, as bufsize is 0

    @property
    def is_alive(self) -> bool:
        """It can take another file."""
        return not self._requests.closed and self._process.poll() is None

    def ask(self, name: str, file: BinaryIO, size: int, *, seconds: float, seen: Callable[[bytes], object]) -> bytes:
        """The answer to the next `size` bytes of the file, which `seen` gets too: one line.

        Raises ParseError, and the process is gone, when it died, and the kinds above where it hung or said too much.
        """
        timed_out = threading.Event()

        def end() -> None:
            timed_out.set()
            self.kill()

        timer = threading.Timer(seconds, end)
        timer.daemon = True
        began = time.monotonic()
        timer.start()
        line = b""
        try:
            self._write(json.dumps({"name": name, "size": size}).encode() + b"\n")
            self._send(file, size, seen)
            line = self._answers.readline(MAX_ANSWER_BYTES + 1)
        except BrokenPipeError:  # it died while we wrote
            pass
        finally:
            timer.cancel()
            if not line.endswith(b"\n"):
                self.close()
        if line.endswith(b"\n"):
            self._is_fresh = False
            return line
        if timed_out.is_set():
            raise SlowWorkerError(
                f"took more than {seconds:.2g} seconds to read; split it, or save it in another format"
            )
        if len(line) > MAX_ANSWER_BYTES:
            raise LongAnswerError("has too much text for one document; split it into smaller files")
        reason = "its parser broke down (out of 1 GB of memory, or damaged); split it, or save it anew"
        raise (ParseError(reason) if self._is_fresh else WornWorkerError(reason, seconds - (time.monotonic() - began)))

    def kill(self) -> None:
        """End the process, from any thread; who waits for its answer gets an error."""
        self._process.kill()

    def close(self) -> None:
        """End the process and let go of its pipes."""
        self._process.kill()
        self._process.wait()
        self.let_go()

    def let_go(self) -> None:
        """Close our ends of its pipes: the process ends with its input, unless somebody else holds them too."""
        for pipe in (self._requests, self._pipe):
            pipe.close()

    def _send(self, file: BinaryIO, size: int, seen: Callable[[bytes], object]) -> None:
        left = size
        while left:
            block = file.read(min(left, _BLOCK))
            if not block:
                raise ParseError("became shorter while it was read; ingest it again")
            seen(block)
            self._write(block)
            left -= len(block)

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[self._requests.write(view) :]


def _environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    kept["PYTHONPATH"] = os.pathsep.join(entry for entry in sys.path if entry)
    kept["MALLOC_ARENA_MAX"] = "2"  # else each thread reserves addresses that the memory limit counts
    return kept
