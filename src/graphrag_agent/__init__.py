"""Agentic RAG as a LangGraph graph: retrieval is a tool, every turn ends in a cited answer.

Names are loaded when they are first used, so that `import graphrag_agent` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graphrag_agent import errors, events
    from graphrag_agent.agent import RagAgent
    from graphrag_agent.assembly import build_rag_graph
    from graphrag_agent.citations import Citation
    from graphrag_agent.context import AgentContext, Budget
    from graphrag_agent.conversation.answer import Answer
    from graphrag_agent.graph.modes import Mode
    from graphrag_agent.identity import Principal, acting_as
    from graphrag_agent.retrieval.knowledge_base import KnowledgeBase
    from graphrag_agent.retrieval.scope import Scope
    from graphrag_agent.settings import Settings
    from graphrag_agent.tools.registry import ToolRegistry
    from graphrag_agent.tools.spec import ToolSpec

_HOME = {
    "AgentContext": "context",
    "Answer": "conversation.answer",
    "Budget": "context",
    "Citation": "citations",
    "KnowledgeBase": "retrieval.knowledge_base",
    "Mode": "graph.modes",
    "Principal": "identity",
    "RagAgent": "agent",
    "Scope": "retrieval.scope",
    "Settings": "settings",
    "ToolRegistry": "tools.registry",
    "ToolSpec": "tools.spec",
    "acting_as": "identity",
    "build_rag_graph": "assembly",
}

__all__ = [
    "AgentContext",
    "Answer",
    "Budget",
    "Citation",
    "KnowledgeBase",
    "Mode",
    "Principal",
    "RagAgent",
    "Scope",
    "Settings",
    "ToolRegistry",
    "ToolSpec",
    "acting_as",
    "build_rag_graph",
    "errors",
    "events",
]


def __getattr__(name: str) -> Any:
    if name in ("errors", "events"):
        return import_module(f"{__name__}.{name}")
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
