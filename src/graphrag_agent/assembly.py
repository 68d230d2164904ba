"""Puts the parts together: a graph from a model, a knowledge base and tools; the same from settings."""

from __future__ import annotations

from collections.abc import Iterable

from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore
from langgraph.types import Checkpointer

from graphrag_agent.context import AgentContext, Budget
from graphrag_agent.errors import SettingsError
from graphrag_agent.graph.builder import draw
from graphrag_agent.graph.loop import Loop
from graphrag_agent.graph.modes import Mode, resolve_mode
from graphrag_agent.graph.nested import nested_answers
from graphrag_agent.graph.state import TurnInput, TurnOutput, TurnState
from graphrag_agent.knowledge_opening import LazyKnowledge, open_knowledge_base
from graphrag_agent.models.composed import ChatModel
from graphrag_agent.models.factory import load_chat_model, resolve_chat_model
from graphrag_agent.settings import Settings
from graphrag_agent.tool_assembly import build_registry, registry_from
from graphrag_agent.tools.knowledge_search import Searchable
from graphrag_agent.tools.registry import ToolLike, ToolRegistry
from graphrag_agent.tools.research_question import build_research_question
from graphrag_agent.tools.spec import FAMILIES
from graphrag_agent.turn_limits import TurnLimits

RagGraph = CompiledStateGraph[TurnState, AgentContext, TurnInput, TurnOutput]


def build_rag_graph(
    *,
    model: ChatModel | str | None = None,
    knowledge: Searchable | None = None,
    tools: Iterable[ToolLike] = (),
    mode: str | Mode = "rag",
    budget: Budget | None = None,
    checkpointer: Checkpointer = None,
    store: BaseStore | None = None,
) -> RagGraph:
    """A compiled LangGraph graph in which the model searches the knowledge base as often as it needs.

    `model` is a chat model, also one with fallbacks or retries, or a name: "offline", "openai:NAME"; it may be left out
    where the mode has one. `knowledge` is a KnowledgeBase or anything with its `asearch`; without it the graph has only
    `tools`. `mode`: "rag", "research" or a Mode of your own. Leave `checkpointer` out on a LangGraph server, which
    brings its own. Raises SettingsError for a bad mode, model or tool, ModelUnavailableError for a model that can't be
    built.
    """
    mode = resolve_mode(mode)
    model = model or mode.model
    if model is None:
        raise SettingsError(f'model is missing and mode {mode.name!r} has none; give one, for example model="offline"')
    chat_model = resolve_chat_model(model)
    registry = build_registry(knowledge, tools, model=chat_model, mode=mode)
    loop = build_loop(chat_model, registry, mode=mode, budget=budget)
    return compile_loop(loop, checkpointer=checkpointer, store=store)


def build_loop(model: ChatModel, registry: ToolRegistry, *, mode: Mode, budget: Budget | None = None) -> Loop:
    """The parts of a graph: the model, those of the tools that the mode leaves, and what the mode adds."""
    mode.check_tools(registry)
    budget = budget or mode.budget or Budget()
    _check_families(registry, budget, *filter(None, [mode.nested]))
    registry = registry.only(mode.tools)
    if nested := mode.nested_budget(budget):
        registry = _with_research_question(registry, model, nested)
    return Loop(chat_model=model, tools=registry, budget=budget, system_prompt=mode.system_prompt())


def compile_loop(loop: Loop, *, checkpointer: Checkpointer = None, store: BaseStore | None = None) -> RagGraph:
    """The graph of the loop."""
    return draw(loop).compile(checkpointer=checkpointer, store=store, name="graphrag_agent")


def graph_from(settings: Settings, mode: str = "rag") -> RagGraph:
    """The graph that a LangGraph server loads: no checkpointer, and nothing is opened before the first search."""
    model = load_chat_model(settings.model)
    knowledge = LazyKnowledge(lambda: open_knowledge_base(settings))
    registry = registry_from(settings, knowledge, model=model, mode=mode)
    return compile_loop(build_loop(model, registry, mode=resolve_mode(mode), budget=budget_from(settings, mode)))


def _check_families(registry: ToolRegistry, *budgets: Budget) -> None:
    known = FAMILIES | {spec.family for spec in registry.values()}
    unknown = {family for budget in budgets for family in budget.max_family_calls} - known
    if unknown:
        told = f"max_family_calls: there is no family {min(unknown)!r} of tools; there are: {', '.join(sorted(known))}"
        raise SettingsError(told)


def _with_research_question(registry: ToolRegistry, model: ChatModel, budget: Budget) -> ToolRegistry:
    """The tools, and one whose nested turns have them too; a client's can't be reached from there."""
    inside = ToolRegistry(spec for spec in registry.values() if spec.runtime == "server")
    nested = Loop(chat_model=model, tools=inside, budget=budget, is_nested=True)
    answers = nested_answers(draw(nested).compile(name="research_question"), tuple(inside))
    return ToolRegistry([*registry.values(), build_research_question(answers)])


def budget_from(settings: Settings, mode: str | Mode = "rag") -> Budget:
    """The budget of a turn: what was set on purpose goes before the mode's, and that before the defaults."""
    own = resolve_mode(mode).budget or Budget()
    of_mode = own.model_dump(include=own.model_fields_set)
    limits = {name: getattr(settings, name) for name in TurnLimits.model_fields}
    of_settings = {name: value for name, value in limits.items() if name in settings.model_fields_set}
    return Budget(**{**limits, **of_mode, **of_settings})
