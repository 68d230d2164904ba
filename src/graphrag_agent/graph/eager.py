"""Tool calls that start while the model still writes.

A call starts the moment its arguments parse as a complete JSON object, when the guard would let it run and its tool is
free of side effects. `tool_dispatch` adopts it; what nobody adopts is cancelled.
"""

from __future__ import annotations

import asyncio
import contextvars
import json
import threading
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import ToolMessage

LEASE_SECONDS = 5.0
"""A run that is cancelled between two super-steps has no node left to clean up. References can't decide it: the task's
own context holds the config, and that holds the channels (SKELETON.md 4)."""

StartCall = Callable[[Mapping[str, Any]], Coroutine[Any, Any, ToolMessage] | None]
"""What runs a call, or None where it must not start early."""


@dataclass(slots=True)
class EarlyCall:
    """A call that was started before its round ended."""

    arguments: Mapping[str, Any]
    task: asyncio.Task[ToolMessage]
    is_adopted: bool = False

    def adopt(self, call: Mapping[str, Any]) -> asyncio.Task[ToolMessage] | None:
        """The task, if it lives on this loop and was started with the arguments that the finished message has."""
        is_lost = (
            self.task.cancelled() or self.task.cancelling() or self.task.get_loop() is not asyncio.get_running_loop()
        )
        if is_lost or call["args"] != self.arguments:
            self.cancel()
            return None
        self.is_adopted = True
        return self.task

    def cancel(self) -> None:
        """Stop the work."""
        self.task.get_loop().call_soon_threadsafe(self.task.cancel)

    def lease(self) -> None:
        """From now on somebody must adopt it soon."""
        self.task.get_loop().call_later(LEASE_SECONDS, lambda: self.is_adopted or self.task.cancel())


@dataclass(slots=True)
class _Part:
    name: str = ""
    arguments: str = ""
    id: str = ""


class EagerStart(BaseCallbackHandler):
    """Watches one model call's stream and starts its calls; `started` has them by call id."""

    run_inline = True

    def __init__(self, start: StartCall) -> None:
        self.started: dict[str, EarlyCall] = {}
        self._start = start
        self._parts: dict[Any, _Part] = {}
        self._done: set[Any] = set()
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._context = contextvars.copy_context()

    def on_chat_model_start(self, *args: Any, **kwargs: Any) -> None:
        """Not left to the default, which prints the whole prompt into a string."""

    def on_llm_new_token(self, token: Any, *, chunk: Any = None, **kwargs: Any) -> None:
        """Gathers the pieces of calls; a complete JSON object can't grow, so nothing waits for the next index."""
        message = getattr(chunk, "message", None)
        pieces = getattr(message, "tool_call_chunks", None) or []
        for piece in pieces:
            part = self._parts.setdefault(piece["index"], _Part())
            part.name += piece["name"] or ""
            part.arguments += piece["args"] or ""
            part.id = piece["id"] or part.id
        is_last = getattr(message, "chunk_position", None) == "last"
        for index, part in self._parts.items() if pieces or is_last else ():
            newest = bool(pieces) and index == pieces[-1]["index"]
            self._try(index, part, is_closed=is_last or not newest)

    def cancel(self) -> None:
        """Stop all that was started."""
        for early in self.started.values():
            early.cancel()

    def _try(self, index: Any, part: _Part, *, is_closed: bool) -> None:
        if index in self._done or not (part.name and part.id and part.arguments.rstrip().endswith("}")):
            return
        try:
            arguments = json.loads(part.arguments)
        except ValueError:
            return
        if isinstance(arguments, dict) and (arguments or is_closed):  # {} may be a placeholder, to be overwritten
            self._done.add(index)
            call = {"name": part.name, "args": arguments, "id": part.id, "type": "tool_call"}
            if threading.get_ident() == self._thread:
                self._begin(call)
            else:  # a model without an async form streams in a thread of its own
                self._loop.call_soon_threadsafe(self._begin, call)

    def _begin(self, call: dict[str, Any]) -> None:
        if call["id"] not in self.started and (work := self._start(call)) is not None:
            task = self._loop.create_task(work, context=self._context.copy())
            self.started[call["id"]] = EarlyCall(call["args"], task)
