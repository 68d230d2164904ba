"""`ChatOpenAI` for OpenAI and for every server that speaks its chat-completions protocol."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from pydantic import SecretStr

from graphrag_agent.errors import ModelUnavailableError
from graphrag_agent.models.openai_compatible.chat import chat_model_class
from graphrag_agent.models.openai_compatible.clients import build_async_client, build_sync_client

if TYPE_CHECKING:
    from langchain_openai import ChatOpenAI

NO_KEY = "none"
"""Sent where a base URL is set without a key: the client insists on one, local servers ignore it."""


def build_openai_model(name: str, **options: Any) -> ChatOpenAI:
    """A ChatOpenAI of that name that streams, reports usage and stays on chat completions.

    The base URL comes from the options, OPENAI_API_BASE or OPENAI_BASE_URL, the key from the options or
    OPENAI_API_KEY. Raises ModelUnavailableError where neither is given. The model may be called from any event loop.

    One option is ours: `merge_seconds` (15 ms), for models that write faster than anyone reads. After a piece of text
    (never before the first one) so much time passes before the next, which then holds all that came meanwhile; 0 sends
    each token as it comes.
    """
    base_url = options.pop("base_url", None) or _find_variable("OPENAI_API_BASE", "OPENAI_BASE_URL")
    api_key = options.pop("api_key", None) or _find_variable("OPENAI_API_KEY") or (NO_KEY if base_url else None)
    if not api_key:
        raise ModelUnavailableError(
            f"model 'openai:{name}' needs OPENAI_API_KEY, or OPENAI_BASE_URL for a local server; "
            "model 'offline' needs neither"
        )
    if isinstance(api_key, str):
        api_key = SecretStr(api_key)
    chosen = {"streaming": True, "stream_usage": True, "use_responses_api": False, **_build_clients(options), **options}
    model_class = chat_model_class()
    if "merge_seconds" not in model_class.model_fields:
        chosen.pop("merge_seconds", None)
    return model_class(model=name, base_url=base_url, api_key=api_key, **chosen)


def _find_variable(*names: str) -> str | None:
    return next((os.environ[name] for name in names if os.environ.get(name)), None)


def _build_clients(options: dict[str, Any]) -> dict[str, Any]:
    """The HTTP clients, with the explicit proxy if there is one; proxy variables of the system work by themselves."""
    if "http_client" in options or "http_async_client" in options:
        return {}
    proxy = options.pop("openai_proxy", None) or _find_variable("OPENAI_PROXY")
    if proxy is None:
        return {"http_async_client": build_async_client()}
    return {
        "openai_proxy": None,  # ChatOpenAI refuses it beside clients
        "http_client": build_sync_client(proxy=proxy),
        "http_async_client": build_async_client(proxy=proxy),
    }
