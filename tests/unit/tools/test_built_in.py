"""Which tools a graph has that is told little."""

from __future__ import annotations

import json

import pytest
from langchain_core.utils.function_calling import convert_to_openai_tool

from graphrag_agent.assembly import LazyKnowledge, build_registry, registry_from
from graphrag_agent.errors import SettingsError
from graphrag_agent.retrieval.knowledge_base import KnowledgeBase
from graphrag_agent.settings import load_settings
from graphrag_agent.token_estimate import estimate_tokens
from graphrag_agent.tools.built_in import BUILT_IN, DEFAULT_TOOLS, ToolParts, build_tools
from tests.canned import CannedKnowledge
from tests.shelf import Shelf, run_tool

MAX_DEFAULT_TOKENS = 1_200
"""Of all default tools' schemas: a hundredth of what a prompt may take (GRAPHRAG_MAX_PROMPT_TOKENS)."""


def test_each_is_built_under_its_own_name() -> None:
    built = build_tools(DEFAULT_TOOLS, ToolParts(knowledge=Shelf()))
    assert [spec.name for spec in built] == list(DEFAULT_TOOLS)
    assert {spec.origin for spec in built} == {"the built-in tool"}


def test_the_default_ones_are_those_of_the_setting() -> None:
    assert load_settings().tools.split(",") == list(DEFAULT_TOOLS)


def test_a_knowledge_base_that_can_only_be_searched_has_the_search_alone() -> None:
    assert list(build_registry(CannedKnowledge())) == ["knowledge_search"]
    assert list(build_registry(None)) == []


async def test_a_knowledge_base_that_is_opened_later_has_all_of_them() -> None:
    knowledge = KnowledgeBase.open(":memory:", embedder="none")
    await knowledge.aingest("examples/leave-policy.md")
    lazy = LazyKnowledge(lambda: knowledge)
    registry = build_registry(lazy)
    assert list(registry) == list(DEFAULT_TOOLS)
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
