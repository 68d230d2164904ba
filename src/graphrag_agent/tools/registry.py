"""The tools of a graph by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from langchain_core.tools import BaseTool

from graphrag_agent.errors import SettingsError
from graphrag_agent.tools.spec import ToolSpec, as_tool_spec

ToolLike = ToolSpec | BaseTool | Callable[..., Any]


class ToolRegistry(Mapping[str, ToolSpec]):
    """Tools by name, in the order given; a name can stand for one tool only."""

    def __init__(self, tools: Iterable[ToolLike] = ()) -> None:
        self._specs: dict[str, ToolSpec] = {}
        for given in tools:
            spec = as_tool_spec(given)
            if spec.name in self._specs:
                origins = " and ".join(tool.origin or "a ToolSpec" for tool in (self._specs[spec.name], spec))
                raise SettingsError(f"two tools are named {spec.name!r}: {origins}; rename one of them")
            self._specs[spec.name] = spec

    def __getitem__(self, name: str) -> ToolSpec:
        return self._specs[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._specs)

    def __len__(self) -> int:
        return len(self._specs)

    def only(self, names: Iterable[str] | None) -> ToolRegistry:
        """The tools with these names; None means all, unknown names add nothing."""
        if names is None:
            return self
        wanted = set(names)
        return ToolRegistry(spec for spec in self._specs.values() if spec.name in wanted)
