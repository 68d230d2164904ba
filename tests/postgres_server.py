"""A PostgreSQL server of the tests' own, on loopback, in a folder that goes with it."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

REQUIRED = "REQUIRE_POSTGRES"
"""Set in CI: there a missing server fails the tests instead of skipping them."""


class PostgresServer:
    """Runs as the user `postgres` where the tests run as root, whom PostgreSQL refuses."""

    def __init__(self) -> None:
        self._as = {"user": "postgres", "group": "postgres", "extra_groups": []} if os.geteuid() == 0 else {}
        self.folder = Path(tempfile.mkdtemp(prefix="graphrag-postgres-"))
        if self._as:
            account = pwd.getpwnam("postgres")
            os.chown(self.folder, account.pw_uid, account.pw_gid)
        self.data = self.folder / "data"
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self._call("initdb", "-D", str(self.data), "-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8")
        self.start()

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres:secret-word@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        listening = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c max_connections=60"
        self._call("pg_ctl", "-D", str(self.data), "-w", "-l", str(self.folder / "log"), "-o", listening, "start")

    def stop(self) -> None:
        self._call("pg_ctl", "-D", str(self.data), "-w", "-m", "immediate", "stop")

    def kill(self) -> None:
        """As a power cut would: no process of it gets to say anything."""
        first = int((self.data / "postmaster.pid").read_text().split()[0])
        children = Path(f"/proc/{first}/task/{first}/children").read_text().split()
        for process in [first, *map(int, children)]:
            os.kill(process, signal.SIGKILL)
        while any(_is_running(process) for process in [first, *map(int, children)]):
            time.sleep(0.02)
        (self.data / "postmaster.pid").unlink(missing_ok=True)

    def remove(self) -> None:
        if (self.data / "postmaster.pid").exists():
            self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def database(self) -> str:
        """The URL of a new, empty database."""
        import psycopg

        with psycopg.connect(self.url(), autocommit=True) as connection:
            count = connection.execute("SELECT count(*) FROM pg_database").fetchone()
            name = f"threads{count and count[0]}"
            connection.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def _call(self, program: str, *arguments: str) -> None:
        path = binary(program)
        assert path
        done = subprocess.run(
            [path, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd="/", text=True, **self._as
        )
        assert done.returncode == 0, done.stderr


def _is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def binary(program: str) -> str | None:
    """Where the program lies; Debian keeps it off the path."""
    found = [shutil.which(program), *sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{program}"), reverse=True)]
    return next((str(path) for path in found if path), None)


def _missing() -> str:
    if not (binary("initdb") and binary("pg_ctl") and binary("postgres")):
        return "PostgreSQL is not installed"
    try:
        import psycopg  # noqa: F401
    except ImportError:
        return "psycopg is not installed (extra postgres)"
    return ""


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """The server of this run; skipped, or failed where it is required, without PostgreSQL."""
    if reason := _missing():
        assert os.environ.get(REQUIRED) != "1", f"{REQUIRED}=1, but {reason}"
        pytest.skip(reason)
    server = PostgresServer()
    yield server
    server.remove()
