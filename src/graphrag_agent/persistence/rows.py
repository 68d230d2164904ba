"""Which rows a checkpointer's threads lie in. The databases' drivers are extras, so they are looked at when met."""

from __future__ import annotations

from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver

from graphrag_agent.persistence.any_saver import AnySaver
from graphrag_agent.persistence.guarded import GuardedSaver
from graphrag_agent.persistence.steps import ThreadIndex, ThreadRows


def rows_of(saver: BaseCheckpointSaver[Any]) -> ThreadRows | None:
    """The rows of one of our own checkpointers; None for others, the one in memory included."""
    return saver.rows() if isinstance(saver, GuardedSaver) else None


def index_of(saver: BaseCheckpointSaver[Any]) -> ThreadIndex:
    """The threads of any checkpointer."""
    return rows_of(saver) or AnySaver(saver)
