"""Whether a provider declined to answer."""

from __future__ import annotations

from langchain_core.messages import AIMessage

REFUSING_REASONS = ("content_filter", "refusal", "safety")
"""Finish reasons of OpenAI, Anthropic and Google for an answer that was withheld."""


def refusal_of(message: AIMessage) -> str:
    """What the provider says instead of an answer; empty when it didn't decline."""
    said = message.additional_kwargs.get("refusal")
    if said:
        return f"The model declined to answer: {said}"
    metadata = message.response_metadata
    reason = str(metadata.get("finish_reason") or metadata.get("stop_reason") or "").casefold()
    return "The model declined to answer this question." if reason in REFUSING_REASONS else ""
