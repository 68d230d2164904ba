"""Every checkpointer that `open_checkpointer` gives does what LangGraph's own suite asks of one."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.conformance import checkpointer_test, validate

from graphrag_agent.persistence.checkpointers import open_checkpointer

REQUIRED = {"put", "put_writes", "get_tuple", "list", "delete_thread"}


@pytest.mark.parametrize("kind", ["memory", "sqlite", "postgres"])
async def test_conforms_to_langgraph(
    kind: Literal["memory", "sqlite", "postgres"], tmp_path: Path, request: pytest.FixtureRequest
):
    server = request.getfixturevalue("postgres_server") if kind == "postgres" else None
    made = 0

    @checkpointer_test(name=kind)
    async def build() -> AsyncIterator[Any]:
        nonlocal made
        made += 1
        url = server.database() if server else ""
        async with open_checkpointer(kind, tmp_path / f"{made}.sqlite", url=url) as saver:
            yield saver

    report = await validate(build)
    failures = [line for result in report.results.values() for line in result.failures or ()]
    assert not failures
    assert {name for name, result in report.results.items() if result.passed} >= REQUIRED


@dataclass
class Unknown:
    """A type that no graph has named."""

    word: str


@pytest.mark.parametrize("kind", ["memory", "sqlite", "postgres"])
async def test_strict_msgpack_holds_here(kind: Any, tmp_path: Path, request: pytest.FixtureRequest):
    """What lies in a database can't make an object of a class that no graph has named."""
    url = request.getfixturevalue("postgres_server").database() if kind == "postgres" else ""
    async with open_checkpointer(kind, tmp_path / "t.sqlite", url=url) as saver:
        config: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
        checkpoint: Any = {
            **empty_checkpoint(),
            "channel_values": {"x": [Unknown("a")]},
            "channel_versions": {"x": "1"},
        }
        await saver.aput(config, checkpoint, {}, {"x": "1"})
        read = await saver.aget_tuple(config)
        assert read is not None
        assert not isinstance(read.checkpoint["channel_values"]["x"][0], Unknown)
