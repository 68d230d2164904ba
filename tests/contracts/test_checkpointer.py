"""Every checkpointer that `open_checkpointer` gives does what LangGraph's own suite asks of one."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Literal

import pytest
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
