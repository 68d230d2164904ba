"""Summaries of parts of documents, written by a chat model."""

from graphrag_agent.models.summary_writing.writer import ChatSummaryWriter, Written

__all__ = ["ChatSummaryWriter", "Written"]
