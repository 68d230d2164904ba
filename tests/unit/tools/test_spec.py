"""What the loop knows about a tool."""

import json
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain_core.tools import InjectedToolArg, StructuredTool, tool
from langchain_core.utils.function_calling import convert_to_openai_tool

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
