"""Threads as conversations: one turn at a time, branches, whose thread it is."""
