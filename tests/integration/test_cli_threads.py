"""`graphrag-agent threads ...` over threads that an agent left."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from graphrag_agent.cli import app
from graphrag_agent.identity import OWNER_KEY, PUBLIC_OWNER, Principal, owner_of
from tests.thread_world import opened


@pytest.fixture
async def folder(tmp_path: Path) -> Path:
    async with opened("sqlite", tmp_path / "threads.sqlite", searches=1) as world:
        for thread, user in (("a1", "ann"), ("b1", "bob"), ("a2", "ann")):
            world.thread, world.metadata = thread, {OWNER_KEY: owner_of(Principal(user=user))}
            await world.ask(f"What is\x1b[31m {thread}?")
        world.thread, world.metadata = "p", {OWNER_KEY: PUBLIC_OWNER}
        await world.ask("Public?")
    return tmp_path


def run(folder: Path, *arguments: str) -> Any:
    return CliRunner().invoke(app, ["threads", *arguments, "--kb", str(folder)])


def test_threads_are_listed(folder: Path):
    done = run(folder, "list")
    assert [line.split()[3] for line in done.stdout.splitlines()] == ["p", "a2", "b1", "a1"]
    assert "\x1b" not in done.stdout
    page = json.loads(run(folder, "list", "--user", "ann", "--limit", "1", "--json").stdout)
    assert [thread["id"] for thread in page["threads"]] == ["a2"]
    page = json.loads(run(folder, "list", "--user", "ann", "--after", page["next"], "--json").stdout)
    assert [(thread["id"], thread["turns"]) for thread in page["threads"]] == [("a1", 1)]
    assert page["next"] == ""


def test_a_thread_is_exported(folder: Path):
    export = json.loads(run(folder, "export", "p").stdout)
    assert [message["role"] for message in export["branches"][0]["messages"]] == ["user", "assistant"]
    missing = run(folder, "export", "never")
    assert (missing.exit_code, missing.stderr) == (1, "error: there is no thread 'never'\n")


def test_threads_are_deleted(folder: Path):
    assert run(folder, "delete", "p", "--compact").stdout == "1 deleted\n"
    assert b"Public?" not in (folder / "threads.sqlite").read_bytes()
    assert run(folder, "delete", "--user", "ann").stdout == "2 deleted\n"
    missing = run(folder, "delete", "b1", "never")
    assert (missing.exit_code, missing.stdout) == (1, "1 deleted\n")
    assert "there is no thread 'never'" in missing.stderr


def test_threads_are_pruned(folder: Path):
    assert run(folder, "prune", "--older-than", "30d", "--keep", "3").stdout == "1 deleted\n"
    assert run(folder, "prune", "--older-than", "0h").stdout == "3 deleted\n"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("prune",), "say --older-than AGE, --keep N or both"),
        (("prune", "--older-than", "soon"), "--older-than='soon' is no age; write 12h, 30d or 8w"),
        (("prune", "--older-than", "999999w"), "--older-than='999999w' is before the calendar begins"),
        (("delete",), "name threads or a --user, one of the two"),
        (("list", "--tenant", "acme"), "--tenant='acme' says of which tenant a --user is; name the user too"),
        (("delete", "p", "--tenant", "acme"), "--tenant='acme' says of which tenant a --user is; name the user too"),
    ],
)
def test_bad_options_are_told(folder: Path, arguments: tuple[str, ...], told: str):
    done = run(folder, *arguments)
    assert (done.exit_code, done.stderr) == (1, f"error: {told}\n")


def test_without_threads_it_says_so(tmp_path: Path):
    assert "there are no threads in" in run(tmp_path, "list").stderr
