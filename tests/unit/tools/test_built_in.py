"""Which tools a graph has that is told little."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.utils.function_calling import convert_to_openai_tool

from graphrag_agent import tool_assembly
from graphrag_agent.assembly import LazyKnowledge
from graphrag_agent.errors import SettingsError
from graphrag_agent.retrieval.knowledge_base import KnowledgeBase
from graphrag_agent.settings import load_settings
from graphrag_agent.testing import ScriptedChatModel
from graphrag_agent.token_estimate import estimate_tokens
from graphrag_agent.tool_assembly import build_registry, registry_from
from graphrag_agent.tools._databases import Databases
from graphrag_agent.tools._web_results import WebResult
from graphrag_agent.tools.built_in import BUILT_IN, DEFAULT_TOOLS, ToolParts, build_tools
from tests.canned import CannedKnowledge
from tests.shelf import Shelf, document, run_tool

DOCUMENT_TOOLS = ["knowledge_search", "find_documents", "read_document", "summarize_documents"]
MAX_DEFAULT_TOKENS = 1_200
"""Of all default tools' schemas: a hundredth of what a prompt may take (GRAPHRAG_MAX_PROMPT_TOKENS)."""


def test_each_is_built_under_its_own_name() -> None:
    parts = ToolParts(
        knowledge=KnowledgeBase.open(":memory:", embedder="none"),
        reasoning_model=ScriptedChatModel(),
        databases=Databases({}, folder=Path()),
        search_provider=Recorded(),
        fetches_web=True,
        interpreter="monty",
    )
    built = build_tools(BUILT_IN, parts)
    assert [spec.name for spec in built] == list(BUILT_IN)
    assert {spec.origin for spec in built} == {"the built-in tool"}


class Recorded:
    async def search(self, query: str, count: int) -> list[WebResult]:
        return []


def test_unless_it_is_configured_rag_has_the_document_tools_and_research_what_can_be_had() -> None:
    model = ScriptedChatModel()
    assert list(registry_from(load_settings(), Shelf(), model=model)) == DOCUMENT_TOOLS
    research = list(registry_from(load_settings(), Shelf(), model=model, mode="research"))
    assert research == [*DOCUMENT_TOOLS, "run_python", "reason", "critique"]
    assert list(registry_from(load_settings(python="off"), Shelf(), mode="research")) == DOCUMENT_TOOLS


def test_what_is_configured_is_there_in_every_mode(tmp_path: Path) -> None:
    file = tmp_path / "databases.json"
    file.write_text(
        '{"shop": {"url": "sqlite:///shop.db", "description": "Orders", "access": [{"tenants": ["*"], "tables": "*"}]}}'
    )
    results = tmp_path / "web.json"
    results.write_text("{}")
    settings = load_settings(databases=str(file), web_fetch=True, web_search=f"recorded:{results}")
    assert list(registry_from(settings, None)) == ["database_query", "web_search", "web_fetch"]


@pytest.mark.parametrize(
    ("tool", "remedy"),
    [
        ("database_query", "GRAPHRAG_DATABASES"),
        ("web_search", "GRAPHRAG_WEB_SEARCH"),
        ("web_fetch", "GRAPHRAG_WEB_FETCH=true"),
        ("critique", "a chat model"),
        ("tabular_analysis", "a knowledge base of files and the extra 'tools'"),
    ],
)
def test_a_tool_that_is_named_and_can_not_be_had_is_told_with_what_it_needs(tool: str, remedy: str) -> None:
    with pytest.raises(SettingsError, match=f"GRAPHRAG_TOOLS: {tool} needs {remedy}"):
        registry_from(load_settings(tools=f"knowledge_search,{tool}"), CannedKnowledge())


@pytest.mark.parametrize("mode", ["rag", "research"])
def test_the_tool_that_comes_with_the_mode_is_told_so_where_it_is_named(mode: str) -> None:
    with pytest.raises(SettingsError, match="research_question comes with GRAPHRAG_MODE=research; leave it out here"):
        registry_from(load_settings(tools="knowledge_search,research_question"), CannedKnowledge(), mode=mode)


def test_a_knowledge_base_that_can_only_be_searched_has_the_search_alone() -> None:
    assert list(build_registry(CannedKnowledge())) == ["knowledge_search"]
    assert list(build_registry(None)) == []


async def test_all_that_ask_the_model_share_it_and_it_is_loaded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []

    def load(name: str) -> BaseChatModel:
        loaded.append(name)
        return ScriptedChatModel("So it is.", "none", "Ten days.")

    monkeypatch.setattr(tool_assembly, "load_chat_model", load)
    shelf = Shelf(document("leave", [("Ten days of rest.", None, "")]))
    registry = build_registry(shelf, model="scripted:one", mode="research")
    assert (await run_tool(registry["reason"], task="Why?")).text == "So it is."
    assert (await run_tool(registry["critique"], question="Why?", draft="So.")).text == "No findings."
    assert "Ten days.\n" in (await run_tool(registry["summarize_documents"], document_ids=["leave"])).text
    assert loaded == ["scripted:one"]


async def test_a_model_of_its_own_thinks_and_the_other_one_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool_assembly, "load_chat_model", lambda name: ScriptedChatModel(f"I am {name}."))
    shelf = Shelf(document("leave", [("Ten days of rest.", None, "")]))
    settings = load_settings(reasoning_model="scripted:two")
    registry = registry_from(settings, shelf, model="scripted:one", mode="research")
    assert (await run_tool(registry["reason"], task="Why?")).text == "I am scripted:two."
    written = await run_tool(registry["summarize_documents"], document_ids=["leave"])
    assert "I am scripted:one." in written.text


async def test_a_knowledge_base_that_is_opened_later_has_all_of_them() -> None:
    knowledge = KnowledgeBase.open(":memory:", embedder="none")
    await knowledge.aingest("examples/leave-policy.md")
    lazy = LazyKnowledge(lambda: knowledge)
    registry = build_registry(lazy)
    assert list(registry) == DOCUMENT_TOOLS
    for name, arguments in (
        ("find_documents", {"query": "leave"}),
        ("read_document", {"document_id": "Leave policy"}),
        ("summarize_documents", {"document_ids": ["Leave policy"]}),
    ):
        message = await run_tool(registry[name], **arguments)
        assert 'title="Leave policy"' in message.text
    await lazy.aclose()


def test_settings_choose_among_them() -> None:
    settings = load_settings(tools="read_document, knowledge_search")
    assert list(registry_from(settings, Shelf())) == ["knowledge_search", "read_document"]
    assert list(registry_from(load_settings(tools=""), Shelf())) == []


def test_an_unknown_name_is_told_with_those_that_there_are() -> None:
    with pytest.raises(SettingsError, match=r"GRAPHRAG_TOOLS: there is no tool 'web'; there are: knowledge_search, "):
        registry_from(load_settings(tools="knowledge_search,web"), Shelf())
    with pytest.raises(SettingsError, match="there is no built-in tool 'web'"):
        build_tools(["web"], ToolParts())


def test_a_tool_passed_in_may_not_take_the_name_of_a_built_in_one() -> None:
    def find_documents() -> str:
        """Mine."""
        return ""

    with pytest.raises(SettingsError, match="'find_documents': the built-in tool and the function "):
        build_registry(Shelf(), [find_documents])


def test_the_default_ones_cost_a_prompt_little() -> None:
    faces = [convert_to_openai_tool(spec.tool) for spec in build_registry(Shelf()).values()]
    assert estimate_tokens(json.dumps(faces, ensure_ascii=False)) <= MAX_DEFAULT_TOKENS


def test_no_argument_of_theirs_is_without_a_description_and_none_is_the_loops() -> None:
    for spec in build_registry(Shelf()).values():
        fields = spec.arguments.model_fields
        assert [name for name, field in fields.items() if not field.description] == []
        assert not {"scope", "tenant", "user", "groups"} & fields.keys()
        assert spec.direct is not None, "a call costs no look at the signature"
    assert set(BUILT_IN) >= set(DEFAULT_TOOLS)
