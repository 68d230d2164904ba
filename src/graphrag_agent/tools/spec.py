"""What the loop knows about a tool beyond its LangChain face."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, cast

from langchain_core.tools import BaseTool, StructuredTool, tool
from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from graphrag_agent.errors import SettingsError, ToolArgumentError
from graphrag_agent.retrieval.scope import Scope

SEARCH_FAMILY = "search"
"""Tools that look for evidence: their calls are compared by words, and stop when nothing new is found."""

INJECTED = frozenset({"scope", "strategy", "rerank", "most_hits", "left"})
"""Arguments that the loop fills in from the request, where a tool marks them with `InjectedToolArg`."""

ReadText = Callable[[str, int, int, Scope], Awaitable[str]]
"""(document id, start, end, scope) -> that part of the document's text. Raises DocumentNotFoundError."""

TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""What OpenAI and Anthropic take as the name of a function."""


class TurnLeft(NamedTuple):
    """What a tool that works like a turn of its own may spend: the argument `left`, where a tool has it injected."""

    tool_calls: int
    seconds: float


@dataclass(frozen=True)
class ToolSpec:
    """A LangChain tool with the policy that the loop applies to it."""

    tool: BaseTool
    runtime: Literal["server", "client"] = "server"
    """Where it runs. A client's tool needs a schema only; the graph stops and waits for its result."""
    family: str = "other"
    """Tools that do the same kind of work, e.g. search."""
    side_effect_free: bool = False
    """It may start before the model has finished, run beside others, and again after a crash."""
    timeout_seconds: float = 30.0
    bind: Callable[[Scope], BaseTool] | None = None
    """Makes the tool that runs for a scope; `tool` is then only its face. What it makes is kept for that scope."""
    read: ReadText | None = None
    """Reads the documents that the tool's evidence comes from, so that a later turn can be given it again."""
    origin: str = ""
    """Where the tool comes from, for whoever must tell it from another of its name."""

    def __post_init__(self) -> None:
        if not TOOL_NAME.fullmatch(self.name):
            raise SettingsError(
                f"tool name {self.name!r}: providers take at most 64 letters, digits, '_' and '-'; rename the tool"
            )
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

    @cached_property
    def direct(self) -> Callable[..., Awaitable[Any]] | None:
        """The coroutine behind the tool, where calling it skips nothing: no config, no callbacks, no injected state.

        `BaseTool.ainvoke` reads the function's signature anew at each call, 0.3 ms of CPU.
        """
        if type(self.tool) is not StructuredTool or self.tool.coroutine is None or self.injected - INJECTED:
            return None
        taken = inspect.signature(self.tool.coroutine).parameters
        known = {*self.arguments.model_fields, *INJECTED}
        is_plain = all(name in known and p.kind is not p.VAR_KEYWORD for name, p in taken.items())
        return self.tool.coroutine if is_plain and known - INJECTED <= taken.keys() else None

    def validate(self, arguments: Any) -> dict[str, Any]:
        """The arguments with defaults filled in. Raises ToolArgumentError that names what is wrong."""
        if not isinstance(arguments, dict):
            raise ToolArgumentError(f"arguments must be a JSON object, not {type(arguments).__name__}")
        if isinstance(self.tool.args_schema, dict):
            return _checked_by_schema(arguments, self.tool.args_schema)
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
        given, origin = tool(given), f"the function {given.__module__}.{getattr(given, '__qualname__', given)}"
    else:
        origin = f"the {type(given).__name__} that was passed in"
    metadata: Mapping[str, Any] = given.metadata or {}
    fields = ("runtime", "family", "side_effect_free", "timeout_seconds")
    return ToolSpec(given, **{name: metadata[name] for name in fields if name in metadata}, origin=origin)


def client_tool(schema: Mapping[str, Any]) -> ToolSpec:
    """A tool that the client runs, from an OpenAI function schema: {"name", "description", "parameters"}.

    Also taken inside {"type": "function", "function": ...}. Raises SettingsError that names what is missing.
    """
    function = schema.get("function", schema)
    name = function.get("name") if isinstance(function, Mapping) else None
    parameters = function.get("parameters", {"type": "object", "properties": {}}) if name else None
    if not isinstance(name, str) or not isinstance(parameters, Mapping) or parameters.get("type") != "object":
        raise SettingsError(f"client tool {dict(schema)!r}: it needs a name and parameters of type object")
    face = StructuredTool(
        name=name,
        description=str(function.get("description") or name),
        args_schema={"title": name, "properties": {}, **parameters},
        func=_runs_at_the_client,
    )
    return ToolSpec(face, runtime="client")


def _runs_at_the_client(**_: Any) -> str:
    raise RuntimeError("a client's tool was run by the server")


def _fields(schema: type[BaseModel]) -> dict[str, Any]:
    return {name: (field.annotation, field) for name, field in schema.model_fields.items()}


def _checked_by_schema(arguments: dict[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """The names are checked here, the values by the client, who knows its tool."""
    known = schema.get("properties", {})
    missing = [name for name in schema.get("required", ()) if name not in arguments]
    unknown = [] if schema.get("additionalProperties") else [name for name in arguments if name not in known]
    problems = [f"{name}: Field required" for name in missing] + [f"{name}: unknown argument" for name in unknown]
    if problems:
        raise ToolArgumentError(f"{'; '.join(problems)}. Arguments are: {', '.join(known)}")
    defaults = {name: field["default"] for name, field in known.items() if "default" in field}
    return {**defaults, **arguments}


def _explain(error: ValidationError, schema: type[BaseModel]) -> str:
    problems = []
    for item in error.errors(include_url=False):
        name = ".".join(map(str, item["loc"])) or "arguments"
        problems.append(f"{name}: unknown argument" if item["type"] == "extra_forbidden" else f"{name}: {item['msg']}")
    return f"{'; '.join(problems)}. Arguments are: {', '.join(schema.model_fields)}"
