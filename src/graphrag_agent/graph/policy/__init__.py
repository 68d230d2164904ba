"""Decisions of the loop: pure functions, no I/O."""
