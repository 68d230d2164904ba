"""Whether a provider declined to answer."""

from __future__ import annotations

from langchain_core.messages import AIMessage, AnyMessage

from graphrag_agent.graph.policy.finish_reason import finish_reason

REFUSING_REASONS = (
    *("content_filter", "content_filtered", "guardrail_intervened", "refusal"),
    *("safety", "recitation", "prohibited_content", "blocklist", "spii"),
)
"""Finish reasons of OpenAI, Bedrock, Anthropic and Google for an answer that was withheld."""


def has_declined(message: AIMessage) -> bool:
    """Whether the provider withheld the answer, with a word of its own or without one."""
    return bool(words_of_refusal(message)) or finish_reason(message) in REFUSING_REASONS


def words_of_refusal(message: AnyMessage) -> str:
    """What the provider says instead of an answer, where it has a field for that."""
    return str(message.additional_kwargs.get("refusal") or "")
