"""The research graph that LangGraph Studio and `langgraph dev` serve: settings in, graph out, no checkpointer."""

from __future__ import annotations

from graphrag_agent.assembly import LazyKnowledge, budget_from, build_rag_graph, open_knowledge_base
from graphrag_agent.settings import load_settings

settings = load_settings()
graph = build_rag_graph(
    model=settings.model,
    knowledge=LazyKnowledge(lambda: open_knowledge_base(settings)),
    mode="research",
    budget=budget_from(settings, "research"),
)
