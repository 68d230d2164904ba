"""The research graph that LangGraph Studio and `langgraph dev` serve: settings in, graph out, no checkpointer."""

from __future__ import annotations

from graphrag_agent.assembly import graph_from
from graphrag_agent.settings import load_settings

graph = graph_from(load_settings(), "research")
