"""Auth of a LangGraph server (`auth.path` in langgraph.auth.json): bearer tokens from the file GRAPHRAG_TOKENS."""

from __future__ import annotations

from graphrag_agent.server.langgraph_auth import auth_from
from graphrag_agent.settings import load_settings

auth = auth_from(load_settings())
