"""Chat models behind OpenAI's chat-completions protocol, at a fraction of the usual CPU."""

from graphrag_agent.models.openai_compatible.building import build_openai_model
from graphrag_agent.models.openai_compatible.rejections import is_tools_rejection

__all__ = ["build_openai_model", "is_tools_rejection"]
