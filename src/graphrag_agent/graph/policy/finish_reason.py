"""Why a provider ended a message, in the words of many."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import BaseMessage

_FIELDS = ("finish_reason", "stop_reason", "stopReason", "done_reason")
"""Of OpenAI and Google, Anthropic, Bedrock, Ollama."""
_CUT_OFF = ("length", "max_tokens", "max_output_tokens", "model_context_window_exceeded")


def finish_reason(message: BaseMessage) -> str:
    """The reason in small letters; empty where the provider tells none."""
    metadata: dict[str, Any] = message.response_metadata
    details = metadata.get("incomplete_details")  # OpenAI's Responses
    given = [*map(metadata.get, _FIELDS), details.get("reason") if isinstance(details, dict) else None]
    return next((reason.casefold() for reason in given if isinstance(reason, str) and reason), "")


def is_cut_off(message: BaseMessage) -> bool:
    """Whether the message ended where its tokens did."""
    return finish_reason(message) in _CUT_OFF
