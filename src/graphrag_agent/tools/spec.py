"""What the loop knows about a tool beyond its LangChain face."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, cast

from langchain_core.tools import BaseTool, tool
from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from graphrag_agent.errors import SettingsError, ToolArgumentError

ToolLike = "ToolSpec | BaseTool | Callable[..., Any]"


@dataclass(frozen=True)
class ToolSpec:
    """A LangChain tool with the policy that the loop applies to it."""

    tool: BaseTool
    runtime: Literal["server"] = "server"
    """Where it runs."""
    family: str = "other"
    """Tools that do the same kind of work, e.g. search."""
    side_effect_free: bool = False
    """It may run beside others, and again after a crash."""
    timeout_seconds: float = 30.0

    def __post_init__(self) -> None:
        if self.timeout_seconds <= 0:
            raise SettingsError(f"tool {self.name!r}: timeout_seconds={self.timeout_seconds!r} must be above 0")

    @property
    def name(self) -> str:
        """The tool's name, by which the model calls it."""
        return self.tool.name

    @cached_property
    def arguments(self) -> type[BaseModel]:
        """The arguments a model may give: what is injected is not among them, and unknown ones are refused."""
        schema = self.tool.tool_call_schema
        if not isinstance(schema, type) or not issubclass(schema, BaseModel):
            raise SettingsError(f"tool {self.name!r} has no argument model; give it a function signature")
        config = ConfigDict(**{**schema.model_config, "extra": "forbid"})
        return create_model(schema.__name__, __config__=config, **_fields(schema))

    @cached_property
    def injected(self) -> frozenset[str]:
        """Arguments that the loop fills in, never the model."""
        taken = cast(type[BaseModel], self.tool.get_input_schema()).model_fields
        return frozenset(taken) - frozenset(self.arguments.model_fields)

    def validate(self, arguments: Any) -> dict[str, Any]:
        """The arguments with defaults filled in. Raises ToolArgumentError that names what is wrong."""
        if not isinstance(arguments, dict):
            raise ToolArgumentError(f"arguments must be a JSON object, not {type(arguments).__name__}")
        try:
            return self.arguments.model_validate(arguments).model_dump()
        except ValidationError as error:
            raise ToolArgumentError(_explain(error, self.arguments)) from None


def as_tool_spec(given: ToolSpec | BaseTool | Callable[..., Any]) -> ToolSpec:
    """A spec for a LangChain tool or a plain function; `metadata` of the tool may carry the spec's fields."""
    if isinstance(given, ToolSpec):
        return given
    if not isinstance(given, BaseTool):
        if not callable(given):
            raise SettingsError(f"tool {given!r} is neither a function, nor a LangChain tool, nor a ToolSpec")
        given = tool(given)
    metadata: Mapping[str, Any] = given.metadata or {}
    known = {name: metadata[name] for name in ("family", "side_effect_free", "timeout_seconds") if name in metadata}
    return ToolSpec(given, **known)


def _fields(schema: type[BaseModel]) -> dict[str, Any]:
    return {name: (field.annotation, field) for name, field in schema.model_fields.items()}


def _explain(error: ValidationError, schema: type[BaseModel]) -> str:
    problems = []
    for item in error.errors(include_url=False):
        name = ".".join(map(str, item["loc"])) or "arguments"
        problems.append(f"{name}: unknown argument" if item["type"] == "extra_forbidden" else f"{name}: {item['msg']}")
    return f"{'; '.join(problems)}. Arguments are: {', '.join(schema.model_fields)}"
