"""Asks a `database_query` tool over a database called shop, as the loop does."""

from __future__ import annotations

from typing import Any

import pytest

from graphrag_agent.errors import ToolError
from graphrag_agent.retrieval.scope import Scope
from graphrag_agent.tools.spec import ToolSpec

ACME = Scope("acme")


async def answer(spec: ToolSpec, scope: Scope = ACME, **arguments: Any) -> tuple[str, dict[str, Any]]:
    """The message and its artifact."""
    assert spec.direct is not None
    found: tuple[str, dict[str, Any]] = await spec.direct(scope=scope, **spec.validate(arguments))
    return found


async def ask(spec: ToolSpec, sql: str | None = None, scope: Scope = ACME, **more: Any) -> str:
    """The message."""
    return (await answer(spec, scope, database="shop", sql=sql, **more))[0]


async def rows(spec: ToolSpec, sql: str, scope: Scope = ACME) -> list[str]:
    """The lines of the result's table, without its head."""
    return [line for line in (await ask(spec, sql, scope)).splitlines() if line.startswith("| ")][2:]


async def refusal(spec: ToolSpec, sql: str, scope: Scope = ACME) -> str:
    """What the error says."""
    with pytest.raises(ToolError) as caught:
        await ask(spec, sql, scope)
    return str(caught.value)
