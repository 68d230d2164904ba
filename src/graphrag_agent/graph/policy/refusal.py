"""Whether a provider declined to answer."""

from __future__ import annotations

from langchain_core.messages import AIMessage, AnyMessage

REFUSING_REASONS = ("content_filter", "refusal", "safety")
"""Finish reasons of OpenAI, Anthropic and Google for an answer that was withheld."""


def has_declined(message: AIMessage) -> bool:
    """Whether the provider withheld the answer, with a word of its own or without one."""
    metadata = message.response_metadata
    reason = str(metadata.get("finish_reason") or metadata.get("stop_reason") or "").casefold()
    return bool(words_of_refusal(message)) or reason in REFUSING_REASONS


def words_of_refusal(message: AnyMessage) -> str:
    """What the provider says instead of an answer, where it has a field for that."""
    return str(message.additional_kwargs.get("refusal") or "")
