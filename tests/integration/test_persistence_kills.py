"""kill -9 between any two writes: every answer that was given is there, nothing is half in, the next turn works."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = (sys.executable, "-W", "ignore", "-m", "tests.kill_points")
ROUNDS = 5
"""Kills for each kind and durability; each takes a second or two."""


@pytest.mark.slow
@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_nothing_given_is_lost_by_a_kill(kind: str, durability: str, tmp_path: Path, request: pytest.FixtureRequest):
    server = request.getfixturevalue("postgres_server") if kind == "postgres" else None
    place = server.database() if server else str(tmp_path / "t.sqlite")
    done = subprocess.run(
        [*PROGRAM, kind, place, durability, str(ROUNDS), "1", str(tmp_path / "given.log")],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("answers kept: ")
