"""How a function becomes a graph node that `invoke` and `ainvoke` both can run."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig

from graphrag_agent.sync_edge import run_sync


class Node(Runnable[Any, Any]):
    """Runs `function(state, config)`: async ones on the caller's loop, or on the background loop under `invoke`.

    Unlike RunnableLambda it makes no callback run of its own and needs no thread for a pure function.
    """

    def __init__(self, function: Callable[[Any, RunnableConfig], Any]) -> None:
        self._function = function
        self._is_async = inspect.iscoroutinefunction(function)

    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Any:
        """The node's update, from sync code."""
        result = self._function(input, config or {})
        return run_sync(result) if self._is_async else result

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Any:
        """The node's update, from async code."""
        result = self._function(input, config or {})
        return await result if self._is_async else result
