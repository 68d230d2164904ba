"""What the loop knows about a tool."""

import functools
import json
import re
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, InjectedToolArg, InjectedToolCallId, StructuredTool, tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.prebuilt import InjectedState, ToolRuntime
from pydantic.v1 import BaseModel as BaseModelV1

from graphrag_agent.errors import SettingsError, ToolArgumentError
from graphrag_agent.tools.registry import ToolRegistry
from graphrag_agent.tools.spec import ToolSpec, as_tool_spec, client_tool

BFCL = Path(__file__).parents[4] / "shared" / "data" / "toolcalls" / "bfcl"
JSON_TYPES = {"dict": "object", "float": "number", "tuple": "array", "any": "string"}


def add(first: int, second: int = 2) -> int:
    """Add two numbers."""
    return first + second


def test_a_function_becomes_a_tool_with_its_signature_as_schema():
    spec = as_tool_spec(add)
    assert spec.name == "add"
    assert spec.validate({"first": 1}) == {"first": 1, "second": 2}
    assert (spec.runtime, spec.family, spec.side_effect_free) == ("server", "other", False)


def test_metadata_of_a_langchain_tool_sets_the_policy():
    made = tool(add)
    made.metadata = {"side_effect_free": True, "family": "math", "timeout_seconds": 3, "unknown": 1}
    spec = as_tool_spec(made)
    assert (spec.side_effect_free, spec.family, spec.timeout_seconds) == (True, "math", 3)


@pytest.mark.parametrize("arguments", [{"first": "x"}, {}, {"first": 1, "third": 3}, [1], None])
def test_arguments_that_do_not_fit_are_named(arguments: Any):
    with pytest.raises(ToolArgumentError):
        as_tool_spec(add).validate(arguments)


def test_injected_arguments_are_not_the_models_to_give():
    async def find(query: str, scope: Annotated[Any, InjectedToolArg]) -> str:
        """Find."""
        return query

    spec = ToolSpec(StructuredTool.from_function(coroutine=find, name="find"))
    assert spec.injected == {"scope"}
    with pytest.raises(ToolArgumentError, match=r"scope: unknown argument\. Arguments are: query"):
        spec.validate({"query": "a", "scope": "all"})
    assert spec.direct is find


def test_a_tool_that_wants_more_than_its_arguments_is_called_through_langchain():
    async def rest(query: str, **more: Any) -> str:
        """Find."""
        return query

    assert ToolSpec(tool(add)).direct is None, "a sync function needs a thread"
    assert ToolSpec(StructuredTool.from_function(coroutine=rest, name="rest")).direct is None


@pytest.mark.parametrize("odd", [{"properties": None}, {"properties": {"a": True}, "required": None}])
def test_a_servers_tool_may_have_an_odd_schema_too(odd: dict[str, Any]):
    """As the tools of an MCP server have."""
    schema = {"type": "object", "additionalProperties": True, **odd}
    assert as_tool_spec(StructuredTool(name="any", description="d", args_schema=schema)).validate({"a": 1}) == {"a": 1}


@pytest.mark.parametrize("name", ["a.b", "with blank", "x" * 65, "ö"])
def test_a_name_that_providers_refuse_is_refused_here(name: str):
    with pytest.raises(SettingsError, match="rename the tool"):
        as_tool_spec(tool(name)(add))


def test_a_name_stands_for_one_tool_only():
    with pytest.raises(SettingsError, match="two tools are named 'add'"):
        ToolRegistry([add, tool(add)])
    with pytest.raises(SettingsError, match="neither a function"):
        ToolRegistry([7])  # type: ignore[list-item]


def test_the_registry_narrows_by_name_and_unknown_names_add_nothing():
    registry = ToolRegistry([add])
    assert list(registry.only(["add", "nope"])) == ["add"]
    assert list(registry.only([])) == []
    assert registry.only(None) is registry


def test_a_clients_tool_keeps_its_schema_and_fills_in_defaults():
    schema = {
        "type": "function",
        "function": {
            "name": "open_panel",
            "description": "Open.",
            "parameters": {
                "type": "object",
                "properties": {"tab": {"type": "string"}, "wide": {"type": "boolean", "default": False}},
                "required": ["tab"],
            },
        },
    }
    spec = client_tool(schema)
    assert convert_to_openai_tool(spec.tool)["function"]["parameters"]["properties"]["tab"] == {"type": "string"}
    assert spec.validate({"tab": "one"}) == {"tab": "one", "wide": False}
    with pytest.raises(ToolArgumentError, match="tab: Field required"):
        spec.validate({})


@pytest.mark.parametrize("name", ["simple_python", "multiple", "parallel"])
def test_the_schemas_of_a_real_collection_bind(name: str):
    path = BFCL / f"{name}.jsonl"
    if not path.is_file():
        pytest.skip("the collection is not beside this checkout (../shared/data)")
    functions = [f for line in path.read_text().splitlines() for f in json.loads(line)["function"]]
    assert len(functions) > 100
    for function in functions:
        schema = _as_json_schema({**function, "name": function["name"].replace(".", "_")})
        spec = client_tool(schema)
        bound = convert_to_openai_tool(spec.tool)["function"]
        assert bound["name"] == schema["name"]
        assert bound["parameters"]["properties"] == schema["parameters"]["properties"]
        required = schema["parameters"].get("required", [])
        assert set(spec.validate(dict.fromkeys(required, "x"))) >= set(required)


def _as_json_schema(value: Any) -> Any:
    """The collection writes Python's names of types."""
    if isinstance(value, dict):
        fixed = {key: _as_json_schema(item) for key, item in value.items()}
        if isinstance(kind := fixed.get("type"), str):
            fixed["type"] = JSON_TYPES.get(kind, kind)
        return fixed
    return [_as_json_schema(item) for item in value] if isinstance(value, list) else value


def test_a_tool_whose_schema_refers_to_nothing_is_refused_when_it_is_given():
    schema = {"type": "object", "properties": {"table": {"$ref": "#/$defs/Table"}}}
    given = StructuredTool(name="read_table", description="Reads.", args_schema=schema, func=add)
    with pytest.raises(SettingsError, match=r"^tool 'read_table': its parameters can't be read .*#/\$defs/Table"):
        as_tool_spec(given)


ANY_OF = {"anyOf": [{"properties": {"city": {"type": "string"}}}, {"properties": {"code": {"type": "integer"}}}]}
DEFS = {"$defs": {"Place": {"type": "object", "properties": {"city": {"type": "string"}}}}}


@pytest.mark.parametrize(
    "schema",
    [
        {**ANY_OF},
        {"$ref": "#/$defs/Place", **DEFS},
        {"allOf": [{"$ref": "#/$defs/Place"}], **DEFS},
        {"patternProperties": {"^c": {}}},
        {"additionalProperties": {}},
        {"additionalProperties": {"type": "string"}},
    ],
)
def test_arguments_that_a_schema_names_elsewhere_are_let_through(schema: dict[str, Any]):
    """As unions and references are written, by programs that make the schemas of MCP servers."""
    given = StructuredTool(name="any", description="d", args_schema={"type": "object", **schema}, func=add)
    assert as_tool_spec(given).validate({"city": "Oslo"}) == {"city": "Oslo"}
    assert client_tool({"name": "any", "parameters": {"type": "object", **schema}}).validate({"city": "Oslo"})


@pytest.mark.parametrize("others", [False, None])
def test_arguments_that_no_schema_names_are_refused(others: Any):
    schema = {"type": "object", "properties": {"city": {}}, "additionalProperties": others}
    given = StructuredTool(name="any", description="d", args_schema=schema, func=add)
    with pytest.raises(ToolArgumentError, match="code: unknown argument"):
        as_tool_spec(given).validate({"code": 1})


def with_state(a: int, state: Annotated[dict[str, Any], InjectedState]) -> str:
    """Its state is LangGraph's."""
    return f"{a} {state}"


def with_runtime(a: int, runtime: ToolRuntime) -> str:
    """Its runtime is LangGraph's."""
    return f"{a} {runtime}"


def with_callback(a: int, then: Callable[[int], int]) -> int:
    """No model can write a function."""
    return then(a)


def piecewise(a: int) -> Iterator[int]:
    """Gives its result in pieces."""
    yield a


async def later_piecewise(a: int) -> AsyncIterator[int]:
    """Gives its result in pieces."""
    yield a


def undescribed(a: int) -> int:
    return a


class OldArguments(BaseModelV1):
    a: int


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (with_state, "tool 'with_state': nothing here fills in its argument 'state', as LangGraph's ToolNode does"),
        (with_runtime, "tool 'with_runtime': nothing here fills in its argument 'runtime'"),
        (with_callback, "tool 'with_callback': its parameters can't be read as a JSON schema: PydanticInvalid"),
        (piecewise, "tool 'piecewise' is a generator; let it return all at once"),
        (later_piecewise, "tool 'later_piecewise' is a generator"),
        (undescribed, "the function undescribed can't be a tool: Function must have a docstring"),
        (StructuredTool.from_function(add, args_schema=OldArguments), "tool 'add' has no argument model of pydantic 2"),
    ],
)
def test_a_tool_whose_calls_would_all_fail_is_refused_when_it_is_given(given: Any, told: str):
    with pytest.raises(SettingsError, match=f"^{re.escape(told)}"):
        ToolRegistry([given])
    if not isinstance(given, BaseTool) and given is not undescribed:
        with pytest.raises(SettingsError, match=f"^{re.escape(told)}"):
            ToolRegistry([ToolSpec(tool(given))])


def test_what_can_be_filled_in_is_no_hindrance():
    async def find(
        query: str,
        scope: Annotated[Any, InjectedToolArg],
        tool_call_id: Annotated[str, InjectedToolCallId],
        state: Annotated[dict[str, Any] | None, InjectedState] = None,
    ) -> str:
        """Find."""
        return query

    assert list(ToolRegistry([find])) == ["find"]


class Lookup(BaseTool):
    name: str = "look_up"
    description: str = "Look up."

    def _run(
        self, query: str, *, config: RunnableConfig, scope: Annotated[Any, InjectedToolArg] = None, limit: int = 3
    ) -> str:
        return f"{query} {limit} {'configurable' in config}"


@pytest.mark.parametrize("given", [Lookup(), ToolSpec(Lookup())], ids=["tool", "spec"])
def test_a_config_in_a_tools_method_is_langchains_to_fill_in(given: Any):
    spec = ToolRegistry([given])["look_up"]
    told = convert_to_openai_tool(spec.tool)["function"]["parameters"]
    assert (list(told["properties"]), told["required"], spec.injected) == (["query", "limit"], ["query"], {"scope"})
    assert spec.validate({"query": "a"}) == {"query": "a", "limit": 3}
    assert spec.tool.invoke({"query": "a"}, {"configurable": {"thread_id": "1"}}) == "a 3 True"


async def test_a_coroutine_function_behind_a_plain_decorator_is_awaited():
    async def fetch(url: str) -> str:
        """Fetch."""
        return f"read {url}"

    @functools.wraps(fetch)
    def counted(*args: Any, **kwargs: Any) -> Any:
        return fetch(*args, **kwargs)

    spec = as_tool_spec(counted)
    assert spec.direct is not None
    assert await spec.direct(url="a") == await spec.tool.ainvoke({"url": "a"}) == "read a"
