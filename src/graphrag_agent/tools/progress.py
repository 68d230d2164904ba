"""How a tool says how far it is: an event on the custom stream of the run, under the id of its call."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from langgraph.config import get_stream_writer

from graphrag_agent.events import LoopEvent

_running: ContextVar[tuple[str, str] | None] = ContextVar("running_call", default=None)


@contextmanager
def running_call(id_: str, name: str) -> Iterator[None]:
    """What `tell_progress` is called for inside belongs to this call."""
    token = _running.set((id_, name))
    try:
        yield
    finally:
        _running.reset(token)


def tell_progress(done: int, total: int) -> None:
    """So many of so many parts are done; nothing happens where no graph runs the tool."""
    if (call := _running.get()) is None:
        return
    id_, name = call
    get_stream_writer()(LoopEvent(event="tool_progress", id=id_, name=name, done=done, total=total))
