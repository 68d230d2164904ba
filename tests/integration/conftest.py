"""What tests of whole turns share."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from graphrag_agent.graph import eager
from graphrag_agent.persistence.checkpointers import open_checkpointer


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def checkpointer(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Any]:
    """An empty one of every kind."""
    server = request.getfixturevalue("postgres_server") if request.param == "postgres" else None
    url = server.database() if server else ""
    async with open_checkpointer(request.param, tmp_path / "threads.sqlite", url=url) as saver:
        yield saver


@pytest.fixture
def short_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    """Early calls that nobody adopts end soon."""
    monkeypatch.setattr(eager, "LEASE_SECONDS", 0.05)
