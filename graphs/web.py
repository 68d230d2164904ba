"""The HTTP app inside a LangGraph server (`http.app`): the page at /chat, /api and /v1, from the settings."""

from __future__ import annotations

from graphrag_agent.server.app import create_app
from graphrag_agent.server.running import authenticate_from
from graphrag_agent.settings import load_settings

settings = load_settings()
app = create_app(settings, authenticate=authenticate_from(settings), is_mounted=True)
