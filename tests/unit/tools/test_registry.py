"""Tools by name: one tool a name, and who is told where the other one comes from."""

from __future__ import annotations

import pytest

from graphrag_agent.errors import SettingsError
from graphrag_agent.tools.registry import ToolRegistry
from graphrag_agent.tools.spec import ToolSpec, as_tool_spec


def weather(city: str) -> str:
    """The weather."""
    return f"rain in {city}"


def test_a_plain_function_is_found_by_its_name() -> None:
    registry = ToolRegistry([weather])
    assert list(registry) == ["weather"]
    assert registry["weather"].tool.invoke({"city": "Ghent"}) == "rain in Ghent"


def test_two_tools_of_one_name_are_refused_with_both_origins() -> None:
    from_file = ToolSpec(as_tool_spec(weather).tool, origin="tools/weather.py")
    told = rf"two tools are named 'weather': the function {__name__}.weather and tools/weather.py; rename one of them"
    with pytest.raises(SettingsError, match=told):
        ToolRegistry([weather, from_file])


def test_a_choice_narrows_and_adds_nothing() -> None:
    registry = ToolRegistry([weather])
    assert list(registry.only(["weather", "web_search"])) == ["weather"]
    assert list(registry.only([])) == []
    assert registry.only(None) is registry
