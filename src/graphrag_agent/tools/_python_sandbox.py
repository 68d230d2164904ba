"""Python with numpy, pandas and sympy: a real process behind sandlock, where the kernel can hold one.

This side starts the launcher, answers the worker's searches, and reads what is left in the working folder. Whatever the
worker says is checked: the code in it can say the same.
"""

from __future__ import annotations

import json
import os
import platform
import signal
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

from graphrag_agent.errors import MissingExtraError, SettingsError, ToolFailedError
from graphrag_agent.retrieval.evidence_tags import storable
from graphrag_agent.tools._job import Job
from graphrag_agent.tools._python_launcher import MACHINES, remove_folder
from graphrag_agent.tools._python_runs import (
    ERROR_CHARACTERS,
    MAX_CALLS_OUT,
    MOST_PRINTED,
    PRINTED_CHARACTERS,
    RESULT_CHARACTERS,
    TOO_MANY_CALLS,
    MadeFile,
    Ran,
    Search,
    SearchRefused,
    code_error,
    cut_result,
    shown_printed,
)

WALL_SECONDS = 30.0
"""pandas and sympy alone take up to ten seconds to import on a busy machine."""

SANDBOX_SECONDS = 12
"""Of computing, of which the imports take up to five."""

MEMORY_BYTES = 3 * 2**29
"""Of address space, of which pandas takes a gigabyte: beyond it the code gets a MemoryError, with its line."""

DISK_BYTES, FILE_BYTES, OPEN_FILES = 32 * 2**20, 8 * 2**20, 64
"""Of all files when one is opened, of one file, of those open at a time. sandlock doesn't count files that were deleted
while open, so a run can fill half a gigabyte of the temporary folder until it ends."""

MAX_LINE = 200_000
"""Bytes of one message of the worker: texts of three limits, each character escaped."""

MAX_PICTURES, MAX_PICTURE_BYTES = 3, 300_000
"""A picture rides in the thread's turn, as text a third longer."""

MAX_RUNS = 2

_GRACE_SECONDS = 3.0
_FOLDER = Path(__file__).parent
_PNG = b"\x89PNG\r\n\x1a\n"
_ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MPLBACKEND": "Agg"}
"""A thread of OpenBLAS for each core would take the whole address space; pictures are drawn without a screen."""

_LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache", "/dev/urandom")


class SandboxInterpreter:
    """A process for each run; whatever it wrote is gone with it, but for a few pictures."""

    max_runs = MAX_RUNS
    wall_seconds = WALL_SECONDS
    about = (
        "The interpreter is Python with numpy, pandas and sympy; import what you need. There is no network and no file "
        "but those that the code writes into its working folder. Pictures that it saves there as .png are kept."
    )

    def __init__(self, *, compute_seconds: int = SANDBOX_SECONDS) -> None:
        """Raises MissingExtraError, or SettingsError where the kernel can't hold a sandbox."""
        refuse_weak_kernel()
        self._seconds = compute_seconds

    def run(self, code: str, search: Search | None, job: Job) -> Ran:
        with _temporary_folder() as place:
            work, storage = place / "work", place / "storage"
            for folder in (work, storage):
                folder.mkdir()
            program = [sys.executable, "-I", "-B", "-W", "ignore", str(_FOLDER / "_python_launcher.py")]
            with subprocess.Popen(  # noqa: S603  # our own program
                [*program, self._walls(place, work, storage)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={},
            ) as launcher:
                # for a launcher that hangs: one that lives has ended the run before
                watch = threading.Timer(WALL_SECONDS + _GRACE_SECONDS, launcher.kill)
                watch.daemon = True
                watch.start()
                try:
                    with job.killed_by(partial(launcher.send_signal, signal.SIGTERM)):
                        told = _converse(launcher, self._order(code), search)
                finally:
                    watch.cancel()
                    _end(launcher)
                return _read(told, launcher, storage)

    def _order(self, code: str) -> dict[str, Any]:
        limits = {"RLIMIT_AS": MEMORY_BYTES, "RLIMIT_CPU": self._seconds, "RLIMIT_FSIZE": FILE_BYTES, "RLIMIT_CORE": 0}
        return {
            "code": code,
            "limits": limits,
            "printed": PRINTED_CHARACTERS,
            "most_printed": MOST_PRINTED,
            "result": RESULT_CHARACTERS,
            "error": ERROR_CHARACTERS,
        }

    def _walls(self, place: Path, work: Path, storage: Path) -> str:
        prefixes = (sys.prefix, sys.base_prefix, sys.exec_prefix)
        return json.dumps(
            {
                "program": (_FOLDER / "_python_worker.py").read_text(encoding="utf-8"),
                "agent": os.getpid(),
                "place": str(place),
                "folder": str(work),
                "storage": str(storage),
                "readable": [path for path in dict.fromkeys((*prefixes, *_LIBRARIES)) if Path(path).exists()],
                "environment": {"HOME": str(work), "PATH": "", **_ENVIRONMENT},
                "disk_bytes": DISK_BYTES,
                "open_files": OPEN_FILES,
                "seconds": WALL_SECONDS,
            }
        )


def refuse_weak_kernel() -> None:
    """Raises MissingExtraError without the extra, SettingsError where this machine has no such walls."""
    if not sys.platform.startswith("linux") or platform.machine() not in MACHINES:
        raise SettingsError(
            f"run_python in a sandbox needs Linux on {' or '.join(MACHINES)}, and this is {sys.platform} on "
            f"{platform.machine()}; use the interpreter 'monty'"
        )
    if find_spec("sandlock") is None:
        raise MissingExtraError("run_python in a sandbox", "sandbox")
    import sandlock  # type: ignore[import-untyped]  # its wheel has no py.typed

    there, needed = sandlock.landlock_abi_version(), sandlock.min_landlock_abi()
    if there < needed:
        raise SettingsError(
            f"run_python in a sandbox needs a kernel with Landlock {needed} or newer, and this one has "
            f"{there if there > 0 else 'none'}; use the interpreter 'monty'"
        )


@contextmanager
def _temporary_folder() -> Iterator[Path]:
    folder = tempfile.mkdtemp(prefix="graphrag-python-")
    try:
        yield Path(folder)
    finally:
        remove_folder(folder)


def _converse(launcher: subprocess.Popen[bytes], order: dict[str, Any], search: Search | None) -> dict[str, Any]:
    """The worker's last message, empty where it ended without one; searches are answered on the way."""
    talk, listen = launcher.stdin, launcher.stdout
    try:
        _say(talk, order)
        for _ in range(MAX_CALLS_OUT):
            said = _hear(listen)
            if not isinstance(said, dict) or "search" not in said:
                return said if isinstance(said, dict) else {}
            _say(talk, _found(said["search"], search))
        return {"printed": "", "result": "", "error": TOO_MANY_CALLS}
    except OSError:  # it has ended
        pass
    return {}


def _say(talk: IO[bytes] | None, message: dict[str, Any]) -> None:
    if talk is not None:
        talk.write(json.dumps(message).encode() + b"\n")
        talk.flush()


def _hear(listen: IO[bytes] | None) -> Any:
    line = b"" if listen is None else listen.readline(MAX_LINE)
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _found(asked: Any, search: Search | None) -> dict[str, Any]:
    try:
        if search is None:
            raise SearchRefused("there is no knowledge base to search")
        if not isinstance(asked, list) or [type(item) for item in asked] != [str, int]:
            raise SearchRefused("call it as search('what to look for', top_k=5)")
        return {"hits": search(*asked)}
    except SearchRefused as error:
        return {"refused": str(error)}


def _end(launcher: subprocess.Popen[bytes]) -> None:
    for stream in (launcher.stdin, launcher.stdout):
        if stream is not None:
            try:
                stream.close()
            except OSError:  # what was to be written can't be any more
                continue
    if launcher.poll() is None:
        try:
            launcher.wait(0.5)
        except subprocess.TimeoutExpired:
            launcher.send_signal(signal.SIGTERM)
    try:
        launcher.wait(_GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        launcher.kill()
        launcher.wait()


def _read(told: dict[str, Any], launcher: subprocess.Popen[bytes], storage: Path) -> Ran:
    texts = {name: told.get(name) for name in ("printed", "result", "error")}
    if not all(isinstance(text, str) for text in texts.values()):
        if launcher.returncode > 0:
            why = launcher.stderr.read(10_000).decode(errors="replace") if launcher.stderr else ""
            raise ToolFailedError(f"the sandbox did not start: {why.strip()[-500:] or launcher.returncode}")
        raise code_error("It was ended in the middle: too much memory or computing, or a crash. Make it do less.", "")
    count = told.get("count")
    printed = shown_printed(str(texts["printed"])[:PRINTED_CHARACTERS], count if isinstance(count, int) else 0)
    if texts["error"]:
        raise code_error(str(texts["error"]), printed)
    files, left_out = _pictures(storage)
    return Ran(printed, cut_result(str(texts["result"])), tuple(files), left_out)


def _pictures(storage: Path) -> tuple[list[MadeFile], int]:
    """The PNG files at the top of the working folder, and how many are left: too many, too big, links, folders."""
    made: list[MadeFile] = []
    paths = sorted(storage.glob("*/upper/*.png"))
    for path in paths[:100]:
        if len(made) < MAX_PICTURES and (content := _picture(path)):
            made.append(MadeFile(storable(path.name)[:100], content))
    return made, len(paths) - len(made)


def _picture(path: Path) -> bytes:
    try:
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return b""
    try:
        told = os.fstat(number)
        if not stat.S_ISREG(told.st_mode) or told.st_size > MAX_PICTURE_BYTES:
            return b""
        content = os.read(number, told.st_size)
    finally:
        os.close(number)
    return content if content.startswith(_PNG) else b""
