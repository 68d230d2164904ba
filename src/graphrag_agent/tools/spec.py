"""What the loop knows about a tool beyond its LangChain face."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Awaitable, Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Annotated, Any, Literal, NamedTuple, cast, get_args

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, InjectedToolCallId, StructuredTool, Tool, tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel, ConfigDict, ValidationError, create_model
from pydantic.fields import FieldInfo

from graphrag_agent.errors import SettingsError, ToolArgumentError
from graphrag_agent.retrieval.scope import Scope

SEARCH_FAMILY = "search"
"""Tools that look for evidence: their calls are compared by words, and stop when nothing new is found."""

FAMILIES = frozenset(
    {"computing", "database", "documents", "other", "reasoning", "research", "search", "summary", "tables", "web"}
)
"""Families of the package's tools. A budget may name any of them, also where none of its tools is in use."""

INJECTED = frozenset({"scope", "strategy", "rerank", "most_hits", "left"})
"""Arguments that the loop fills in from the request, where a tool marks them with `InjectedToolArg`."""

_NAMING_ELSEWHERE = ("$ref", "allOf", "anyOf", "oneOf", "if", "dependentSchemas", "patternProperties")
"""Keywords of JSON Schema behind which arguments may be named too, as programs write unions."""

_ONE_TEXT = {"type": "object", "properties": {"__arg1": {"type": "string"}}, "required": ["__arg1"]}
"""Arguments of a LangChain `Tool`, as LangChain tells models of them."""

ReadText = Callable[[str, int, int, Scope], Awaitable[str]]
"""(document id, start, end, scope) -> that part of the document's text. Raises DocumentNotFoundError."""

TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""What OpenAI and Anthropic take as the name of a function."""


class TurnLeft(NamedTuple):
    """What a tool that works like a turn of its own may spend: the argument `left`, where a tool has it injected."""

    tool_calls: int
    seconds: float
    families: Mapping[str, int] = MappingProxyType({})
    """Calls of a family, for those that have a cap."""


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
        if self.tool.args_schema is None and (schema := _missing_schema(self.tool)) is not None:
            object.__setattr__(self, "tool", self.tool.model_copy(update={"args_schema": schema}))

    @cached_property
    def sound(self) -> ToolSpec:
        """Itself, where a model can be told of it and its calls can run. A turn is too late to learn that.

        Raises SettingsError.
        """
        whose = "client tool" if self.runtime == "client" else "tool"
        try:
            convert_to_openai_tool(self.tool)
        except Exception as error:  # a reference to what the schema doesn't define, a type that JSON hasn't
            told = f"its parameters can't be read as a JSON schema: {type(error).__name__}: {error}"
            raise SettingsError(f"{whose} {self.name!r}: {told}") from error
        if not isinstance(self.tool.args_schema, dict):
            _ = self.arguments
            self._refuse_unfilled()
        if any(map(_is_generator, (getattr(self.tool, "func", None), getattr(self.tool, "coroutine", None)))):
            raise SettingsError(f"tool {self.name!r} is a generator; let it return all at once, as a list or a text")
        return self

    def _refuse_unfilled(self) -> None:
        fields = cast(type[BaseModel], self.tool.get_input_schema()).model_fields
        for name in sorted(self.injected - INJECTED):
            if fields[name].is_required() and not _is_call_id(fields[name]):
                told = f"nothing here fills in its argument {name!r}, as LangGraph's ToolNode does; give it a default"
                raise SettingsError(f"tool {self.name!r}: {told}, or take one of {', '.join(sorted(INJECTED))}")

    @property
    def name(self) -> str:
        """The tool's name, by which the model calls it."""
        return self.tool.name

    @cached_property
    def arguments(self) -> type[BaseModel]:
        """The arguments a model may give: what is injected is not among them, and unknown ones are refused."""
        schema = self.tool.tool_call_schema
        if not isinstance(schema, type) or not issubclass(schema, BaseModel):
            raise SettingsError(f"tool {self.name!r} has no argument model of pydantic 2; give it a function signature")
        config = ConfigDict(**{**schema.model_config, "extra": "forbid"})
        return create_model(schema.__name__, __config__=config, **_fields(schema))

    @cached_property
    def injected(self) -> frozenset[str]:
        """Arguments that the loop fills in, never the model; a tool described by a JSON schema has none."""
        if isinstance(self.tool.args_schema, dict):
            return frozenset()
        taken = cast(type[BaseModel], self.tool.get_input_schema()).model_fields
        return frozenset(taken) - frozenset(self.arguments.model_fields)

    @cached_property
    def direct(self) -> Callable[..., Awaitable[Any]] | None:
        """The coroutine behind the tool, where calling it skips nothing: no config, no callbacks, no injected state.

        `BaseTool.ainvoke` reads the function's signature anew at each call, 0.3 ms of CPU.
        """
        if type(self.tool) is not StructuredTool or self.tool.coroutine is None or self.injected - INJECTED:
            return None
        if isinstance(self.tool.args_schema, dict):
            return None
        taken = inspect.signature(self.tool.coroutine).parameters
        known = {*self.arguments.model_fields, *INJECTED}
        is_plain = all(name in known and p.kind is not p.VAR_KEYWORD for name, p in taken.items())
        return self.tool.coroutine if is_plain and known - INJECTED <= taken.keys() else None

    def validate(self, arguments: Any) -> dict[str, Any]:
        """The arguments with defaults filled in, all plain data. Raises ToolArgumentError that names what is wrong."""
        checked = self._checked(arguments)
        return checked.model_dump() if isinstance(checked, BaseModel) else checked

    def values(self, arguments: Any) -> dict[str, Any]:
        """The same for the tool's own code: where its signature has a model, it gets one. It may change them."""
        return dict(self._checked(deepcopy(arguments)))

    def unread(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """The same for LangChain, which reads them itself: as the model gave them, under the names that it looks for.

        What a model of the signature dumps can't always be read again: aliases, computed fields, JSON in a text.
        """
        if isinstance(self.tool.args_schema, dict):
            return self.values(arguments)
        return {self._aliases.get(name, name): value for name, value in deepcopy(arguments).items()}

    @cached_property
    def _aliases(self) -> dict[str, str]:
        """Argument -> its alias, which models are not told of."""
        fields = cast(type[BaseModel], self.tool.get_input_schema()).model_fields
        aliases = {name: field.validation_alias or field.alias for name, field in fields.items()}
        return {name: alias for name, alias in aliases.items() if isinstance(alias, str)}

    def _checked(self, arguments: Any) -> BaseModel | dict[str, Any]:
        if not isinstance(arguments, dict):
            raise ToolArgumentError(f"arguments must be a JSON object, not {type(arguments).__name__}")
        if isinstance(self.tool.args_schema, dict):
            return _checked_by_schema(arguments, self.tool.args_schema)
        try:
            return self.arguments.model_validate(arguments)
        except ValidationError as error:
            raise ToolArgumentError(_explain(error, self.arguments)) from None


def as_tool_spec(given: ToolSpec | BaseTool | Callable[..., Any]) -> ToolSpec:
    """A spec for a LangChain tool or a plain function; `metadata` of the tool may carry the spec's fields.

    Raises SettingsError for a tool that isn't sound.
    """
    if isinstance(given, ToolSpec):
        return given.sound
    if not isinstance(given, BaseTool):
        if not callable(given):
            raise SettingsError(f"tool {given!r} is neither a function, nor a LangChain tool, nor a ToolSpec")
        given, origin = _as_tool(given)
    else:
        origin = f"the {type(given).__name__} that was passed in"
    metadata: Mapping[str, Any] = given.metadata or {}
    fields = ("runtime", "family", "side_effect_free", "timeout_seconds")
    return ToolSpec(given, **{name: metadata[name] for name in fields if name in metadata}, origin=origin).sound


def _as_tool(function: Callable[..., Any]) -> tuple[BaseTool, str]:
    """The function as a tool, and where it comes from."""
    name = getattr(function, "__qualname__", repr(function))
    origin = f"the function {getattr(function, '__module__', '?')}.{name}"
    if inspect.iscoroutinefunction(inspect.unwrap(function)) and not inspect.iscoroutinefunction(function):
        function = _awaited(function)
    try:
        return tool(function), origin
    except Exception as error:  # no docstring, no name, a type that pydantic doesn't know
        raise SettingsError(f"the function {name} can't be a tool: {error}") from error


def _awaited(function: Callable[..., Any]) -> Callable[..., Any]:
    """A coroutine function behind a decorator that is none, which would be called in a thread and never awaited."""

    @functools.wraps(function)
    async def awaited(*args: Any, **kwargs: Any) -> Any:
        return await function(*args, **kwargs)

    return awaited


def client_tool(schema: Mapping[str, Any]) -> ToolSpec:
    """A tool that the client runs, from an OpenAI function schema: {"name", "description", "parameters"}.

    Also taken inside {"type": "function", "function": ...}. Raises SettingsError that names what is missing or wrong.
    """
    function = schema.get("function", schema)
    name = function.get("name") if isinstance(function, Mapping) else None
    parameters = function.get("parameters", {"type": "object", "properties": {}}) if name else None
    if not isinstance(name, str) or not isinstance(parameters, Mapping) or parameters.get("type") != "object":
        raise SettingsError(f"client tool {dict(schema)!r}: it needs a name and parameters of type object")
    face = StructuredTool(
        name=name,
        description=str(function.get("description") or name),
        args_schema={"title": name, **_tidied(parameters)},
        func=_runs_at_the_client,
    )
    return ToolSpec(face, runtime="client").sound


def _missing_schema(tool: BaseTool) -> dict[str, Any] | type[BaseModel] | None:
    """What a tool without a schema takes from a model, where LangChain would ask for more.

    It goes by the parameters of the tool's method: the config, which it fills in itself, and all those of a `Tool`,
    which takes one text.
    """
    if isinstance(tool, Tool):
        return _ONE_TEXT
    made = cast(type[BaseModel], tool.get_input_schema())
    fields = {name: field for name, field in made.model_fields.items() if not _is_config(field)}
    if len(fields) == len(made.model_fields):
        return None
    typed: dict[str, Any] = {name: (_annotation(field), field) for name, field in fields.items()}
    return create_model(made.__name__, **typed)


def _is_config(field: FieldInfo) -> bool:
    return field.annotation is RunnableConfig or RunnableConfig in get_args(field.annotation)


def _annotation(field: FieldInfo) -> Any:
    """With what pydantic took off it: LangChain looks there for what is injected."""
    return Annotated[(field.annotation, *field.metadata)] if field.metadata else field.annotation


def _is_generator(function: Any) -> bool:
    plain = inspect.unwrap(function) if callable(function) else None
    return inspect.isgeneratorfunction(plain) or inspect.isasyncgenfunction(plain)


def _is_call_id(field: FieldInfo) -> bool:
    """Whether LangChain fills it in, with the id of the call."""
    return any(mark is InjectedToolCallId or isinstance(mark, InjectedToolCallId) for mark in field.metadata)


def _runs_at_the_client(**_: Any) -> str:
    raise RuntimeError("a client's tool was run by the server")


def _fields(schema: type[BaseModel]) -> dict[str, Any]:
    return {name: (field.annotation, field) for name, field in schema.model_fields.items()}


def _checked_by_schema(arguments: dict[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """The names are checked here, the values by the client, who knows its tool."""
    known, required = _named_in(schema)
    missing = [name for name in required if name not in arguments]
    unknown = [] if _may_name_others(schema) else [name for name in arguments if name not in known]
    problems = [f"{name}: Field required" for name in missing] + [f"{name}: unknown argument" for name in unknown]
    if problems:
        raise ToolArgumentError(f"{'; '.join(problems)}. Arguments are: {', '.join(known)}")
    # copies: what a tool does with its arguments is not to be the next call's default
    defaults = {name: deepcopy(field["default"]) for name, field in known.items() if "default" in field}
    return {**defaults, **arguments}


def _tidied(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The schema as every provider reads it: programs write null or true where there is nothing to say."""
    properties, required = _named_in(parameters)
    rest = {name: value for name, value in parameters.items() if name != "required"}
    return {**rest, "properties": properties, **({"required": required} if required else {})}


def _named_in(schema: Mapping[str, Any]) -> tuple[dict[str, Mapping[str, Any]], list[str]]:
    """The arguments and their schemas, {} where that is none, and the names of those that are required."""
    properties, required = schema.get("properties"), schema.get("required")
    known = properties if isinstance(properties, Mapping) else {}
    named = required if isinstance(required, list | tuple) else ()
    return (
        {name: field if isinstance(field, Mapping) else {} for name, field in known.items()},
        [name for name in named if isinstance(name, str)],
    )


def _may_name_others(schema: Mapping[str, Any]) -> bool:
    """Whether there may be arguments that don't stand under the schema's own `properties`, though none is told of."""
    others = schema.get("additionalProperties")
    return not (others is None or others is False) or any(schema.get(word) for word in _NAMING_ELSEWHERE)


def _explain(error: ValidationError, schema: type[BaseModel]) -> str:
    problems = []
    for item in error.errors(include_url=False):
        name = ".".join(map(str, item["loc"])) or "arguments"
        problems.append(f"{name}: unknown argument" if item["type"] == "extra_forbidden" else f"{name}: {item['msg']}")
    return f"{'; '.join(problems)}. Arguments are: {', '.join(schema.model_fields)}"
