"""Checkpointers from settings."""
