"""What a mode is made of, what goes before it, and how a bad one is refused."""

from pathlib import Path
from typing import Any

import pytest

from graphrag_agent import Budget, Mode, RagAgent, ToolRegistry, build_rag_graph
from graphrag_agent.assembly import budget_from, build_loop
from graphrag_agent.errors import SettingsError
from graphrag_agent.graph.modes import MODES, NESTED_BUDGET, RESEARCH_BUDGET
from graphrag_agent.settings import load_settings
from graphrag_agent.testing import ScriptedChatModel
from graphrag_agent.tool_assembly import build_registry
from tests.canned import CannedKnowledge

ASK: Any = {"messages": [{"role": "user", "content": "hi"}]}


def ping() -> str:
    """Nothing."""
    return "pong"


def test_modes_of_the_package_are_these():
    assert sorted(MODES) == ["rag", "research"]
    assert "write a report" in MODES["research"].system_prompt()
    assert MODES["rag"].system_prompt().startswith("You answer questions from a knowledge base")


def test_an_unknown_mode_is_refused_with_those_there_are():
    with pytest.raises(SettingsError, match="mode='chat' is unknown; there is: rag, research, or a Mode"):
        build_rag_graph(model="offline", mode="chat")


async def test_a_mode_of_your_own_brings_model_prompt_tools_and_budget(tmp_path: Path):
    prompt = tmp_path / "prompt.md"
    prompt.write_text("Answer in verse; a $ stays a $.\n")
    with ScriptedChatModel("Roses.") as model:
        mode = Mode(name="poet", prompt=prompt, model=model, tools=("ping",), budget=Budget(max_rounds=2))
        agent = RagAgent(knowledge=CannedKnowledge(), tools=[ping], mode=mode)
        await agent.aask("hi")
    assert model.requests[0].messages[0].text == "Answer in verse; a $ stays a $."
    assert model.requests[0].tools == ("ping",)


def test_what_a_caller_gives_goes_before_the_mode():
    own, given = ScriptedChatModel("Hello."), ScriptedChatModel("Hello.")
    mode = Mode(name="own", model=own, budget=Budget(max_rounds=2))
    build_rag_graph(model=given, tools=[ping], mode=mode).invoke(ASK)
    assert (len(given.requests), len(own.requests)) == (1, 0)
    build_rag_graph(tools=[ping], mode=mode).invoke(ASK)
    assert (len(given.requests), len(own.requests)) == (1, 1)
    tools = ToolRegistry([ping])
    assert build_loop(own, tools, mode=mode).budget.max_rounds == 2
    assert build_loop(own, tools, mode=mode, budget=Budget(max_rounds=3)).budget.max_rounds == 3


def test_settings_that_were_made_go_before_the_mode_and_defaults_behind_it(monkeypatch: pytest.MonkeyPatch):
    assert budget_from(load_settings(), "research") == RESEARCH_BUDGET
    monkeypatch.setenv("GRAPHRAG_MAX_SECONDS", "60")
    monkeypatch.setenv("GRAPHRAG_MAX_HISTORY_TOKENS", "500")
    budget = budget_from(load_settings(), "research")
    assert (budget.max_seconds, budget.max_history_tokens) == (60, 500)
    assert (budget.max_rounds, budget.max_family_calls) == (12, {"research": 6})
    assert budget_from(load_settings()) == Budget(max_seconds=60, max_history_tokens=500)


async def test_the_settings_say_which_mode_an_agent_has_unless_it_is_given_one(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GRAPHRAG_MODE", "research")
    with ScriptedChatModel("Hello.", "Hello.") as model:
        await RagAgent(model=model, knowledge=CannedKnowledge()).aask("hi")
        await RagAgent(model=model, knowledge=CannedKnowledge(), mode="rag").aask("hi")
    assert [request.tools for request in model.requests] == [
        ("knowledge_search", "run_python", "reason", "critique", "research_question"),
        ("knowledge_search",),
    ]


@pytest.mark.parametrize(
    ("mode", "told"),
    [
        (Mode(name="own", tools=("ping", "pong")), "mode 'own': tools='pong' is unknown; the graph has: ping"),
        (Mode(name="own", prompt="verse"), "mode 'own': prompt='verse' is none of 'system', 'research', and no Path"),
        (Mode(name="own", prompt=Path("none.md")), "mode 'own': prompt 'none.md' can't be read"),
        (Mode(name="own", prompt=Path("/dev/null")), "mode 'own': prompt '/dev/null' is empty"),
    ],
    ids=["tool", "prompt", "file", "empty"],
)
def test_a_bad_mode_is_refused_with_its_value(mode: Mode, told: str):
    with pytest.raises(SettingsError, match=told):
        build_rag_graph(model="offline", tools=[ping], mode=mode)


def test_a_graph_without_a_model_is_refused():
    with pytest.raises(SettingsError, match="model is missing and mode 'rag' has none"):
        build_rag_graph(knowledge=CannedKnowledge())


def test_a_mode_may_name_the_research_tool_that_it_brings():
    mode = Mode(name="own", tools=("ping", "research_question"), nested=NESTED_BUDGET)
    loop = build_loop(ScriptedChatModel(), build_registry(CannedKnowledge(), [ping]), mode=mode)
    assert tuple(loop.tools) == ("ping", "research_question")


def test_no_limit_of_a_nested_turn_is_larger_than_the_outer_ones():
    outer = Budget(max_prompt_tokens=8_000, max_tool_calls=5, citation_policy="off", max_family_calls={"research": 6})
    nested = MODES["research"].nested_budget(outer)
    assert nested is not None
    assert (nested.max_prompt_tokens, nested.max_tool_calls, nested.max_rounds) == (8_000, 5, 4)
    assert (nested.citation_policy, nested.history_summary, nested.max_family_calls) == ("off", "off", {})
    assert MODES["rag"].nested_budget(outer) is None


def test_limits_of_a_kind_of_tools_hold_inside_too_and_the_smaller_one_counts():
    inner = Budget(max_rounds=4, max_family_calls={"search": 9, "web": 2})
    outer = Budget(max_family_calls={"research": 6, "search": 3, "database": 1})
    nested = Mode(name="own", nested=inner).nested_budget(outer)
    assert nested is not None
    assert nested.max_family_calls == {"search": 3, "database": 1, "web": 2}


def test_nested_turns_fit_into_the_turn_that_has_them_run():
    research = RESEARCH_BUDGET
    assert research.max_family_calls["research"] * (NESTED_BUDGET.max_tool_calls + 1) <= research.max_tool_calls
    assert NESTED_BUDGET.max_seconds < research.max_seconds / 2
