"""Extra search queries, written by a chat model."""

from graphrag_agent.models.query_writing.writer import ChatQueryWriter

__all__ = ["ChatQueryWriter"]
