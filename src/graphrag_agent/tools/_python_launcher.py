"""The program that puts the worker behind sandlock: Landlock, seccomp, a user without rights, limits.

Started by `python -I -B FILE`, in a process of its own, so that the worker inherits neither open files nor environment
of the agent, and a fault of sandlock's is no fault of the agent's. Its standard input and output become the worker's.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import shutil
import signal
import struct
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

MACHINES = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}
"""Machine -> its number for seccomp and its number of the call `socket`."""

NOBODY = 65534

_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _REFUSE, _KILL = 0x7FFF0000, 0x00050001, 0x80000000
_FOREIGN_CALLS = 0x40000000
"""Calls of x86-64's second set begin here."""


_SECCOMP, _ORPHANS_COME_HERE, _NO_NEW_RIGHTS = 22, 36, 38
"""Options of prctl."""


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def main() -> None:
    """Run the worker to its end; the first argument says how."""
    order = json.loads(sys.argv[1])
    _prctl(_ORPHANS_COME_HERE, 1)
    refuse_sockets()
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    with _start(order) as process:
        for number in (0, 1):
            os.close(number)  # when the worker lets go of its end, the agent is to see it
        waiting = threading.Thread(target=process.wait, kwargs={"timeout": order["seconds"]}, daemon=True)
        waiting.start()
        while waiting.is_alive():
            waiting.join(0.05)
            if stopped.is_set() or _is_alone(order):
                process.kill()
    end_orphans()
    if _is_alone(order):  # an agent that lives reads the folder, and removes it then
        remove_folder(order["place"])


def _is_alone(order: dict[str, Any]) -> bool:
    """Whether the agent was killed: nobody else would end the run, or remove what it wrote."""
    return os.getppid() != int(order["agent"])


def remove_folder(folder: str) -> None:
    """However deep the worker made it."""
    try:
        shutil.rmtree(folder, ignore_errors=True)
    except RecursionError:  # folders in folders in folders: before Python 3.13 it goes down by recursion
        subprocess.run(["rm", "-rf", "--", folder], check=False)  # noqa: S603, S607


def _start(order: dict[str, Any]) -> Any:
    from sandlock import BranchAction, Sandbox, StdioMode  # type: ignore[import-untyped]  # its wheel has no py.typed

    identity = {"uid": NOBODY, "gid": NOBODY} if os.geteuid() == 0 else {}
    sandbox = Sandbox(
        fs_readable=order["readable"],
        fs_writable=[order["folder"], os.devnull],
        workdir=order["folder"],
        cwd=order["folder"],
        fs_storage=order["storage"],
        max_disk=order["disk_bytes"],
        on_exit=BranchAction.KEEP,
        on_error=BranchAction.KEEP,
        clean_env=True,
        env=order["environment"],
        max_processes=1,  # so the worker's own limit of memory is the limit of all
        extra_deny_syscalls=["memfd_create", "fallocate"],  # memory and disk that no limit counts
        max_open_files=order["open_files"],
        no_coredump=True,
        **identity,
    )
    command = [sys.executable, "-I", "-B", "-c", order["program"]]
    return sandbox.popen(command, stdin=StdioMode.INHERIT, stdout=StdioMode.INHERIT, stderr=StdioMode.NULL)


def end_orphans() -> None:
    """Kill what should not be running any more; a process whose parent is killed comes here too."""
    while pids := [int(pid) for task in Path("/proc/self/task").iterdir() for pid in _children(task)]:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def _children(task: Path) -> list[str]:
    try:
        return (task / "children").read_text().split()
    except OSError:  # a thread that has ended
        return []


def refuse_sockets() -> None:
    """No process from here on can make a socket, whatever sandlock lets through.

    sandlock 0.9 stops `connect`, but a TCP connection can also be opened by `sendto` with MSG_FASTOPEN.
    """
    machine, socket_call = MACHINES[platform.machine()]
    lines = [(_LOAD, 0, 0, 4), (_EQUAL, 1, 0, machine), (_RETURN, 0, 0, _KILL), (_LOAD, 0, 0, 0)]
    lines += [(_AT_LEAST, 0, 1, _FOREIGN_CALLS), (_RETURN, 0, 0, _KILL)]
    lines += [(_EQUAL, 0, 1, socket_call), (_RETURN, 0, 0, _REFUSE), (_RETURN, 0, 0, _ALLOW)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in lines))
    program = _Program(len(lines), ctypes.addressof(code))
    _prctl(_NO_NEW_RIGHTS, 1)
    _prctl(_SECCOMP, 2, ctypes.addressof(program))


def _prctl(option: int, *values: int) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(option, *map(ctypes.c_ulong, (*values, 0, 0, 0, 0)[:4])):
        raise OSError(ctypes.get_errno(), f"prctl {option}")


if __name__ == "__main__":
    main()
