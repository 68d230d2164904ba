"""Waiting for what comes in its own time, a process's end too: as long as it takes, and an error if it never comes."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

SECONDS = 20.0


def until(is_true: Callable[[], Any], seconds: float = SECONDS) -> None:
    """Return when it is true; for what happens in other threads and processes."""
    end = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.01)


async def until_here(is_true: Callable[[], Any], seconds: float = SECONDS) -> None:
    """The same for what happens on this event loop."""
    end = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < end, "it never came true"
        await asyncio.sleep(0.001)


def is_running(pid: int) -> bool:
    """Whether the process is there; one that has ended and was not asked for its status is not."""
    try:
        os.kill(pid, 0)
        if not Path("/proc").is_dir():
            return True
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False
