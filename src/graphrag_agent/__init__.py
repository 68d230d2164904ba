"""Agentic RAG as a LangGraph graph."""
