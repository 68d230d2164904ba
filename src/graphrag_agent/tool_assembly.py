"""Which tools a graph has, and what they are made of; the same from settings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from graphrag_agent.errors import SettingsError
from graphrag_agent.graph.modes import Mode, resolve_mode
from graphrag_agent.models.asking import AskedModel
from graphrag_agent.models.composed import ChatModel
from graphrag_agent.models.extractive import ExtractiveChatModel
from graphrag_agent.models.factory import load_chat_model
from graphrag_agent.models.query_writing import ChatQueryWriter
from graphrag_agent.models.summary_writing import ChatSummaryWriter
from graphrag_agent.settings import OFFLINE, Settings
from graphrag_agent.tools.built_in import BUILT_IN, DEFAULT_TOOLS, ToolParts, build_tools
from graphrag_agent.tools.database_query import open_databases
from graphrag_agent.tools.knowledge_search import Searchable
from graphrag_agent.tools.registry import ToolLike, ToolRegistry
from graphrag_agent.tools.spec import ToolSpec
from graphrag_agent.tools.user_tools import installed_tool_names, load_installed_tools, load_tool_folder
from graphrag_agent.tools.web_search import web_search_provider_from

AUTO = "auto"
_OF_THE_MODE = "research_question"
"""A mode with nested turns always has it, and no other can."""


def build_registry(
    knowledge: Searchable | None,
    tools: Iterable[ToolLike] = (),
    *,
    model: ChatModel | str = OFFLINE,
    mode: str | Mode = "rag",
) -> ToolRegistry:
    """The tools of a graph: the built-in ones of the mode, as far as the knowledge base does for them, and the given.

    The model writes summaries, and queries for requests that ask for the strategy multi_query or hyde; in the mode
    research it reasons and criticises too.
    """
    parts = _parts(knowledge, model)
    return ToolRegistry([*build_tools(tools_of(mode), parts), *tools])


def registry_from(
    settings: Settings,
    knowledge: Searchable | None,
    tools: Iterable[ToolLike] = (),
    *,
    model: ChatModel | str = OFFLINE,
    mode: str | Mode = "rag",
) -> ToolRegistry:
    """The same with the built-in tools that the settings name, those of installed packages, and those of a folder.

    Files are read (of databases, of tools), so where the settings name some not on an event loop. Raises SettingsError
    for a name that stands for no tool, or for two, and for a tool that can't be had.
    """
    own = load_tool_folder(settings.tool_folder) if settings.tool_folder else []
    parts = _parts_from(settings, knowledge, model)
    if settings.tools.strip() == AUTO:
        return ToolRegistry([*build_tools(tools_of(mode), parts), *own, *tools])
    named = [name.strip() for name in settings.tools.split(",") if name.strip()]
    built = build_tools((name for name in named if name in BUILT_IN), parts)
    _refuse_missing(named, built)
    return ToolRegistry([*built, *_installed(named), *own, *tools])


def tools_of(mode: str | Mode) -> tuple[str, ...]:
    """Names of the built-in tools that suit a mode."""
    mode = resolve_mode(mode)
    if mode.tools is not None:
        return tuple(name for name in mode.tools if name in BUILT_IN)
    return tuple(BUILT_IN) if mode.built_in == "all" else DEFAULT_TOOLS


def _parts(knowledge: Searchable | None, model: ChatModel | str, reasoning_model: str = "") -> ToolParts:
    asked = _asked(model)
    return ToolParts(
        knowledge=knowledge,
        query_writer=ChatQueryWriter(asked) if asked else None,
        summary_writer=ChatSummaryWriter(asked) if asked else None,
        reasoning_model=asked if reasoning_model in ("", model) else _asked(reasoning_model),
    )


def _parts_from(settings: Settings, knowledge: Searchable | None, model: ChatModel | str) -> ToolParts:
    return replace(
        _parts(knowledge, model, settings.reasoning_model),
        databases=open_databases(settings.databases) if settings.databases else None,
        search_provider=web_search_provider_from(settings.web_search) if settings.web_search else None,
        fetches_web=settings.web_fetch,
        interpreter=settings.python,
    )


def _asked(model: ChatModel | str) -> AskedModel | None:
    """What asks the model, for all parts that do; None for the offline model, which only quotes."""
    if model == OFFLINE or isinstance(model, ExtractiveChatModel):
        return None
    return AskedModel(partial(load_chat_model, model) if isinstance(model, str) else model)


def _refuse_missing(named: Iterable[str], built: Iterable[ToolSpec]) -> None:
    have = {spec.name for spec in built}
    for name in named:
        if name in BUILT_IN and name not in have:
            raise SettingsError(f"GRAPHRAG_TOOLS: {name} needs {BUILT_IN[name].needs}")


def _installed(named: Iterable[str]) -> list[ToolSpec]:
    others = [name for name in named if name not in BUILT_IN]  # a package can't take the name of a built-in one
    installed = load_installed_tools(others) if others else []
    if _OF_THE_MODE in others:
        raise SettingsError(f"GRAPHRAG_TOOLS: {_OF_THE_MODE} comes with GRAPHRAG_MODE=research; leave it out here")
    if unknown := set(others).difference(spec.name for spec in installed):
        known = ", ".join([*BUILT_IN, *installed_tool_names()])
        raise SettingsError(f"GRAPHRAG_TOOLS: there is no tool {min(unknown)!r}; there are: {known}")
    return installed
