"""The rag graph that LangGraph Studio and `langgraph dev` serve: settings in, graph out, no checkpointer."""

from __future__ import annotations

from graphrag_agent.assembly import LazyKnowledge, budget_from, build_rag_graph, open_knowledge_base, registry_from
from graphrag_agent.models.factory import load_chat_model
from graphrag_agent.settings import load_settings

settings = load_settings()
model = load_chat_model(settings.model)
knowledge = LazyKnowledge(lambda: open_knowledge_base(settings))
graph = build_rag_graph(
    model=model,
    tools=registry_from(settings, knowledge, model=model).values(),
    budget=budget_from(settings),
)
