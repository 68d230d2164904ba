"""The agent loop as a LangGraph graph."""
