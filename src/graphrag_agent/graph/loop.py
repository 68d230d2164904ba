"""What the nodes of one graph share, and how they read the request that they run for."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.runtime import get_runtime

from graphrag_agent.context import AgentContext, Budget
from graphrag_agent.errors import SettingsError
from graphrag_agent.graph.prompts.history import newest_question
from graphrag_agent.graph.prompts.window import within_window
from graphrag_agent.identity import PUBLIC, Principal, acting_principal
from graphrag_agent.models.composed import ChatModel, smallest_window, takes_tools, with_each
from graphrag_agent.models.phrases import reader_language
from graphrag_agent.models.text_tools.model import TextToolsModel
from graphrag_agent.models.words import Language
from graphrag_agent.retrieval.scope import Scope
from graphrag_agent.token_estimate import estimate_tokens
from graphrag_agent.tools.registry import ToolRegistry
from graphrag_agent.tools.research_question import RESEARCH_FAMILY
from graphrag_agent.tools.spec import ToolSpec, client_tool

Protocol = Literal["native", "text", "one_shot", "none"]
"""How the model gets at the tools: calls of its own, calls as text, one search before it speaks, not at all."""
SEARCH_TOOL = "knowledge_search"
KEPT = 128
"""Requests, bound models and bound tools kept; the least recently used go first."""
NO_OPTIONS = AgentContext()

T = TypeVar("T")


class Instructions(NamedTuple):
    """Which system prompt a model call has."""

    protocol: Protocol
    system: str = ""
    """The mode's, for a model with tools; empty: that of a rag agent."""


class RecentlyMade(Generic[T]):
    """Keeps what was made for a key, up to a number of keys."""

    def __init__(self, size: int = KEPT) -> None:
        self._made: OrderedDict[Hashable, T] = OrderedDict()
        self._size = size
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """What was made for the key, or what `make` makes now."""
        with self._lock:
            if key not in self._made:
                self._made[key] = make()
                while len(self._made) > self._size:
                    self._made.popitem(last=False)
            self._made.move_to_end(key)
            return self._made[key]


@dataclass(frozen=True)
class Loop:
    """The parts a graph was built with."""

    chat_model: ChatModel
    tools: ToolRegistry
    budget: Budget
    system_prompt: str = ""
    """The mode's, for a model with tools; empty: that of a rag agent."""
    is_nested: bool = False
    """Its turns answer for another turn, which is handed the evidence that they cite."""
    _requests: RecentlyMade[Request] = field(default_factory=RecentlyMade)
    _models: RecentlyMade[Runnable[Any, BaseMessage]] = field(default_factory=RecentlyMade)
    _schema_tokens: RecentlyMade[int] = field(default_factory=RecentlyMade)
    _bound_tools: RecentlyMade[BaseTool] = field(default_factory=RecentlyMade)
    _tools_rejected: threading.Event = field(default_factory=threading.Event)
    _calls_need_tools: threading.Event = field(default_factory=threading.Event)

    def request(self) -> Request:
        """The request of the run that the calling node belongs to."""
        runtime = get_runtime(AgentContext)
        context = runtime.context or NO_OPTIONS  # None when the caller passes nothing (LANGGRAPH.md A8)
        principal = acting_principal() if runtime.server_info is None else principal_of(runtime.server_info.user)
        # a context can't be hashed; a request keeps its own, so that no other object has its id meanwhile
        return self._requests.get((id(context), principal), lambda: Request(self, context, principal))

    def bound_to(self, tools: ToolRegistry, protocol: Protocol) -> Runnable[Any, BaseMessage]:
        """The chat model with these tools; without any it still reads the turn in its own protocol."""
        faces = [spec.tool for spec in tools.values()]

        def bind(model: BaseChatModel) -> Runnable[Any, BaseMessage]:
            reader = TextToolsModel(inner=model) if protocol == "text" else model
            return reader.bind_tools(faces) if faces else reader

        return self._models.get((protocol, _names_of(faces)), lambda: with_each(self.chat_model, bind))

    def schema_tokens(self, tools: ToolRegistry) -> int:
        """Estimated tokens that the descriptions of these tools take in a prompt."""
        faces = [spec.tool for spec in tools.values()]

        def count() -> int:
            schemas = [convert_to_openai_tool(face) for face in faces]
            return estimate_tokens(json.dumps(schemas, ensure_ascii=False))

        return self._schema_tokens.get(_names_of(faces), count)

    def tool_for(self, spec: ToolSpec, scope: Scope) -> ToolSpec:
        """The spec with the tool that runs for this scope; made once for each scope, never shared among scopes."""
        if (bind := spec.bind) is None:
            return spec
        return ToolSpec(
            self._bound_tools.get((spec.name, scope), lambda: bind(scope)),
            family=spec.family,
            side_effect_free=spec.side_effect_free,
            timeout_seconds=spec.timeout_seconds,
        )

    @cached_property
    def is_research(self) -> bool:
        """Whether its turns have parts researched in turns of their own, or are such turns."""
        return self.is_nested or any(spec.family == RESEARCH_FAMILY for spec in self.tools.values())

    def remember_rejection(self) -> None:
        """The provider took no tools; from now on calls are text."""
        self._tools_rejected.set()

    def remember_that_calls_need_tools(self) -> None:
        """The provider took no history with calls in it for a request without tools."""
        self._calls_need_tools.set()

    @property
    def needs_tools_for_calls(self) -> bool:
        """Whether it is known to take none."""
        return self._calls_need_tools.is_set()

    @property
    def takes_native_calls(self) -> bool:
        """Whether the model takes tool calls of its own; a model that does not say so is tried."""
        return not self._tools_rejected.is_set() and takes_tools(self.chat_model)


@dataclass(frozen=True)
class Request:
    """One run's options and identity; each node asks who is acting, so that permissions are today's."""

    loop: Loop
    context: AgentContext
    principal: Principal

    @cached_property
    def limits(self) -> Budget:
        """What this turn may spend, within the model's own window where that is known."""
        return within_window(self.context.narrow(self.loop.budget), smallest_window(self.loop.chat_model))

    @property
    def schema_tokens(self) -> int:
        """Estimated tokens of all the tools that the model may be offered."""
        return self.loop.schema_tokens(self.tools) if self.protocol in ("native", "text") else 0

    @cached_property
    def tools(self) -> ToolRegistry:
        """The tools this request may use: those of the graph that it names, and the client's own.

        Raises SettingsError for a client tool with a bad schema or a name that the graph has.
        """
        chosen = self.loop.tools.only(self.context.tools)
        if not self.context.client_tools:
            return chosen
        own = [client_tool(schema) for schema in self.context.client_tools]
        if taken := [spec.name for spec in own if spec.name in self.loop.tools]:
            raise SettingsError(f"client_tools: {taken[0]!r} is a tool of the server; give yours another name")
        return ToolRegistry([*chosen.values(), *own])

    def runs_at_client(self, name: str) -> bool:
        """Whether a call that the guard let through is the client's, also when it is resumed without its tools."""
        return name not in self.loop.tools or self.loop.tools[name].runtime == "client"

    @property
    def can_search(self) -> bool:
        """Whether the loop can search with the user's words: with its own tool, which a client's may be called like."""
        return SEARCH_TOOL in self.tools and not self.runs_at_client(SEARCH_TOOL)

    def travels_alone(self, name: str) -> bool:
        """Whether a call of this tool has a task of its own, so that it never runs again when one beside it was killed.

        Calls without side effects that run side by side share one, which costs less, except where a turn takes minutes:
        in research.
        """
        spec = self.loop.tools.get(name)
        if spec is None or spec.runtime == "client":
            return False
        return not spec.side_effect_free or self.loop.is_research or not self.context.parallel_tool_calls

    @property
    def most_hits(self) -> int | None:
        """Most hits of one search, for a tool that searches by itself; 0 where the request leaves out the search."""
        named = self.context.tools
        return self.context.top_k if named is None or SEARCH_TOOL in named else 0

    @cached_property
    def scope(self) -> Scope:
        """What this request may see."""
        return Scope.of(self.principal).narrowed(
            collections=self.context.collections,
            document_ids=self.context.document_ids,
            source_types=self.context.source_types,
        )

    @cached_property
    def scope_key(self) -> str:
        """The scope as text, for fingerprints: the same words under another scope are another call."""
        conditions = {name: sorted(values) for name, values in self.scope.conditions().items()}
        return json.dumps(conditions, sort_keys=True)  # names may hold any separator

    def language(self, messages: Sequence[BaseMessage]) -> Language:
        """What the loop itself speaks in this turn."""
        question = newest_question(messages)
        return reader_language(self.context.locale, question.text if question else "")

    @property
    def instructions(self) -> Instructions:
        """Which system prompt the model has."""
        return Instructions(self.protocol, self.loop.system_prompt)

    @property
    def protocol(self) -> Protocol:
        """How the model gets at the tools."""
        tools = self.tools
        if self.context.retrieval == "none" or not tools:
            return "none"
        if self.context.retrieval == "auto":
            return "native" if self.loop.takes_native_calls else "text"
        return "one_shot" if self.can_search else "none"


def _names_of(tools: Sequence[BaseTool]) -> tuple[tuple[str, str, str], ...]:
    """What tells tools apart: a client's may differ in their description alone."""
    return tuple(
        (tool.name, tool.description, str(tool.args_schema) if isinstance(tool.args_schema, dict) else "")
        for tool in tools
    )


def principal_of(user: Any) -> Principal:
    """The principal of a server's authenticated user; the public one where there is none."""
    if user is None:
        return PUBLIC
    claims = {name: user[name] for name in ("tenant", "groups") if name in user}
    groups = claims.get("groups") or ()
    return Principal(
        tenant=str(claims.get("tenant") or PUBLIC.tenant),
        user=str(user.identity),
        groups=tuple(map(str, [groups] if isinstance(groups, str) else groups)),
    )
