"""`ChatOpenAI` for OpenAI and for every server that speaks its chat-completions protocol."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from graphrag_agent.errors import ModelUnavailableError

if TYPE_CHECKING:
    from langchain_openai import ChatOpenAI

NO_KEY = "none"
"""Sent where a base URL is set without a key: the client insists on one, local servers ignore it."""


def build_openai_model(name: str, **options: Any) -> ChatOpenAI:
    """A ChatOpenAI of that name that streams, reports usage and stays on chat completions.

    The base URL comes from the options, OPENAI_API_BASE or OPENAI_BASE_URL, the key from the options or
    OPENAI_API_KEY. Raises ModelUnavailableError where neither is given.
    """
    from langchain_openai import ChatOpenAI

    base_url = _first(options.pop("base_url", None), "OPENAI_API_BASE", "OPENAI_BASE_URL")
    api_key = _first(options.pop("api_key", None), "OPENAI_API_KEY") or (NO_KEY if base_url else None)
    if api_key is None:
        raise ModelUnavailableError(
            f"model 'openai:{name}' needs OPENAI_API_KEY, or OPENAI_BASE_URL for a local server; "
            "model 'offline' needs neither"
        )
    defaults: dict[str, Any] = {"streaming": True, "stream_usage": True, "use_responses_api": False}
    return ChatOpenAI(model=name, base_url=base_url, api_key=api_key, **{**defaults, **options})


def _first(given: Any, *names: str) -> Any:
    return given or next((os.environ[name] for name in names if os.environ.get(name)), None)
