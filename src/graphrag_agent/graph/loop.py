"""What the nodes of one graph share, and how they read the request that they run for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable
from langgraph.runtime import get_runtime

from graphrag_agent.context import AgentContext, Budget
from graphrag_agent.identity import PUBLIC, Principal, acting_principal
from graphrag_agent.retrieval.scope import Scope
from graphrag_agent.tools.registry import ToolRegistry

Protocol = Literal["native", "one_shot", "none"]
SEARCH_TOOL = "knowledge_search"


@dataclass(frozen=True)
class Loop:
    """The parts a graph was built with."""

    chat_model: BaseChatModel
    tools: ToolRegistry
    budget: Budget
    _bound: dict[tuple[str, ...], Runnable[Any, BaseMessage]] = field(default_factory=dict)

    def request(self) -> Request:
        """The request of the run that the calling node belongs to."""
        runtime = get_runtime(AgentContext)
        context = runtime.context or AgentContext()  # None when the caller passes nothing (LANGGRAPH.md A8)
        principal = acting_principal() if runtime.server_info is None else principal_of(runtime.server_info.user)
        return Request(self, context, principal)

    def bound_to(self, tools: ToolRegistry) -> Runnable[Any, BaseMessage]:
        """The chat model with these tools."""
        names = tuple(tools)
        if names not in self._bound:
            self._bound[names] = (
                self.chat_model.bind_tools([spec.tool for spec in tools.values()]) if names else self.chat_model
            )
        return self._bound[names]

    def can_call_tools(self) -> bool:
        """Whether the model takes native tool calls; an unknown model is tried (DESIGN 4.9)."""
        if (self.chat_model.profile or {}).get("tool_calling") is False:
            return False
        return type(self.chat_model).bind_tools is not BaseChatModel.bind_tools


@dataclass(frozen=True, slots=True)
class Request:
    """One run's options and identity. Computed anew in each node, so that permissions are today's."""

    loop: Loop
    context: AgentContext
    principal: Principal

    @property
    def limits(self) -> Budget:
        """What this turn may spend."""
        return self.context.narrow(self.loop.budget)

    @property
    def tools(self) -> ToolRegistry:
        """The tools this request may use."""
        return self.loop.tools.only(self.context.tools)

    @property
    def scope(self) -> Scope:
        """What this request may see."""
        return Scope.of(self.principal).narrowed(
            collections=self.context.collections,
            document_ids=self.context.document_ids,
            source_types=self.context.source_types,
        )

    @property
    def scope_key(self) -> str:
        """The scope as text, for fingerprints: the same words under another scope are another call."""
        return "|".join(
            f"{name}={','.join(sorted(values))}" for name, values in sorted(self.scope.conditions().items())
        )

    @property
    def protocol(self) -> Protocol:
        """How the model gets at the tools."""
        if self.context.retrieval == "none" or not self.tools:
            return "none"
        if self.context.retrieval == "auto" and self.loop.can_call_tools():
            return "native"
        return "one_shot" if SEARCH_TOOL in self.tools else "none"


def principal_of(user: Any) -> Principal:
    """The principal of a server's authenticated user; the public one where there is none."""
    if user is None:
        return PUBLIC
    claims = {name: user[name] for name in ("tenant", "groups") if name in user}
    return Principal(
        tenant=str(claims.get("tenant") or PUBLIC.tenant),
        user=str(user.identity),
        groups=tuple(map(str, claims.get("groups") or ())),
    )
