"""`langgraph dev` on loopback, offline, in a folder of its own."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]


def new_home(home: Path, config: str) -> Path:
    """The folder with the graphs and this configuration of ours in it."""
    shutil.copytree(ROOT / "graphs", home / "graphs")
    shutil.copy(ROOT / config, home / config)
    (home / "pyproject.toml").write_text('[project]\nname = "studio-test"\nversion = "0"\n')
    return home


@contextmanager
def dev_server(home: Path, config: str, **environment: str) -> Iterator[str]:
    """Base URL of a server; its log is `server.log` in the folder."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("LANGSMITH", "LANGCHAIN"))}
    given = {
        "GRAPHRAG_EMBEDDER": "none",
        "LANGGRAPH_CLI_NO_ANALYTICS": "1",
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")]),
    }
    options = ["--config", config, "--no-browser", "--no-reload", "--port", str(port)]
    log = home / "server.log"
    with log.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "langgraph_cli", "dev", *options],
            cwd=home,
            env={**inherited, **given, **environment},
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        _wait_until_up(port, process, log)
        yield f"http://127.0.0.1:{port}"
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(20)


def _wait_until_up(port: int, process: subprocess.Popen[Any], log: Path) -> None:
    for _ in range(600):
        assert process.poll() is None, log.read_text()
        with socket.socket() as probe:
            probe.settimeout(1)
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise AssertionError(log.read_text())
