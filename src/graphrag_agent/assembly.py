"""Puts the parts together: a graph from a model, a knowledge base and tools; the same from settings."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Unpack

from langchain_core.language_models import BaseChatModel
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore
from langgraph.types import Checkpointer

from graphrag_agent.context import AgentContext, Budget
from graphrag_agent.documents import Chunk, Document
from graphrag_agent.errors import SettingsError
from graphrag_agent.graph.builder import draw
from graphrag_agent.graph.loop import Loop
from graphrag_agent.graph.modes import Mode, resolve_mode
from graphrag_agent.graph.nested import nested_answers
from graphrag_agent.graph.state import TurnInput, TurnOutput, TurnState
from graphrag_agent.models.factory import load_chat_model
from graphrag_agent.retrieval.knowledge_base import KnowledgeBase, KnowledgeBaseStats
from graphrag_agent.retrieval.scope import Scope
from graphrag_agent.retrieval.search.options import SearchChoices
from graphrag_agent.retrieval.search.rerank import resolve_reranker
from graphrag_agent.retrieval.search.result import SearchResult
from graphrag_agent.retrieval.stores.opening import checked_folder, has_folder
from graphrag_agent.retrieval.stores.server_address import QdrantServer, is_server
from graphrag_agent.settings import Settings
from graphrag_agent.tool_assembly import build_query_writer, build_registry, registry_from
from graphrag_agent.tools.knowledge_search import Searchable
from graphrag_agent.tools.registry import ToolLike, ToolRegistry
from graphrag_agent.tools.research_question import build_research_question
from graphrag_agent.turn_limits import TurnLimits

RagGraph = CompiledStateGraph[TurnState, AgentContext, TurnInput, TurnOutput]


def build_rag_graph(
    *,
    model: BaseChatModel | str | None = None,
    knowledge: Searchable | None = None,
    tools: Iterable[ToolLike] = (),
    mode: str | Mode = "rag",
    budget: Budget | None = None,
    checkpointer: Checkpointer = None,
    store: BaseStore | None = None,
) -> RagGraph:
    """A compiled LangGraph graph in which the model searches the knowledge base as often as it needs.

    `model` is a chat model or a name: "offline", "openai:NAME"; it may be left out where the mode has one. `knowledge`
    is a KnowledgeBase or anything with its `asearch`; without it the graph has only `tools`. `mode`: "rag", "research"
    or a Mode of your own. Leave `checkpointer` out on a LangGraph server, which brings its own. Raises SettingsError
    for a bad mode or tool, ModelUnavailableError for a model that can't be built.
    """
    mode = resolve_mode(mode)
    model = model or mode.model
    if model is None:
        raise SettingsError(f'model is missing and mode {mode.name!r} has none; give one, for example model="offline"')
    chat_model = load_chat_model(model) if isinstance(model, str) else model
    registry = build_registry(knowledge, tools, model=chat_model, mode=mode)
    loop = build_loop(chat_model, registry, mode=mode, budget=budget)
    return compile_loop(loop, checkpointer=checkpointer, store=store)


def build_loop(model: BaseChatModel, registry: ToolRegistry, *, mode: Mode, budget: Budget | None = None) -> Loop:
    """The parts of a graph: the model, those of the tools that the mode leaves, and what the mode adds."""
    mode.check_tools(registry)
    registry = registry.only(mode.tools)
    budget = budget or mode.budget or Budget()
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


def _with_research_question(registry: ToolRegistry, model: BaseChatModel, budget: Budget) -> ToolRegistry:
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


def home_of(settings: Settings) -> Path:
    """The folder for what is kept on this machine: the knowledge base's, or here where that is on a server."""
    return checked_folder(settings.kb if has_folder(settings.kb) else ".graphrag")


def open_knowledge_base(settings: Settings, *, reembed: bool = False) -> KnowledgeBase:
    """The knowledge base that the settings name; it is made where it isn't there yet.

    `reembed`: vectors of another embedder than theirs are dropped.
    """
    reranker = resolve_reranker(settings.reranker, model=settings.rerank_model)
    location: str | QdrantServer = settings.kb
    if is_server(settings.kb):
        names = ("prefix", "shards", "replicas", "write_consistency", "write_ordering", "timeout_seconds")
        location = QdrantServer(settings.kb, **{name: getattr(settings, f"qdrant_{name}") for name in names})
    return KnowledgeBase.open(
        location,
        embedder=settings.embedder,
        reranker=reranker,
        fusion=settings.fusion,
        strategy=settings.strategy,
        query_writer=build_query_writer(settings.model),
        diversity=settings.diversity,
        reembed=reembed,
    )


class LazyKnowledge:
    """A knowledge base that is opened, in a thread, when the first search comes.

    A graph that a server imports must be cheap to import, and must not touch the disk on the server's event loop.
    """

    def __init__(self, open_: Callable[[], KnowledgeBase]) -> None:
        self._open = open_
        self._lock = threading.Lock()
        self._opened: KnowledgeBase | None = None

    async def asearch(
        self, query: str, *, scope: Scope | None = None, top_k: int = 5, **choices: Unpack[SearchChoices]
    ) -> SearchResult:
        """Hits for the query inside the scope, best first."""
        return await (await self._knowledge()).asearch(query, scope=scope, top_k=top_k, **choices)

    async def aclose(self) -> None:
        """Close what was opened."""
        if self._opened is not None:
            await self._opened.aclose()

    async def aread(
        self, document_id: str, *, start: int = 0, end: int | None = None, scope: Scope | None = None
    ) -> str:
        """The document's text from `start` to `end`."""
        return await (await self._knowledge()).aread(document_id, start=start, end=end, scope=scope)

    async def adocuments(self, scope: Scope | None = None) -> list[Document]:
        """By source, without their text."""
        return await (await self._knowledge()).adocuments(scope)

    async def adocument(self, document_id: str, scope: Scope | None = None) -> Document:
        """The document with its text."""
        return await (await self._knowledge()).adocument(document_id, scope)

    async def achunks(self, document_id: str, scope: Scope | None = None) -> list[Chunk]:
        """What the document was cut into, in order."""
        return await (await self._knowledge()).achunks(document_id, scope)

    async def astats(self, scope: Scope | None = None) -> KnowledgeBaseStats:
        """Counts of the scope."""
        return await (await self._knowledge()).astats(scope)

    async def aoriginal(self, document_id: str, *, max_bytes: int, scope: Scope | None = None) -> bytes:
        """The file that the document was made from, unchanged since then."""
        return await (await self._knowledge()).aoriginal(document_id, max_bytes=max_bytes, scope=scope)

    async def _knowledge(self) -> KnowledgeBase:
        return await asyncio.to_thread(self._open_once) if self._opened is None else self._opened

    def _open_once(self) -> KnowledgeBase:
        with self._lock:
            if self._opened is None:
                self._opened = self._open()
            return self._opened
