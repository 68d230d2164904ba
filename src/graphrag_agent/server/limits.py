"""How much the HTTP app takes, and a count of the turns that run for each principal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from graphrag_agent.server.problems import Problem


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of the HTTP app. What goes beyond is refused with a status that says so."""

    max_body_bytes: int = 1_000_000
    max_body_seconds: float = 15.0
    """For a request's body to arrive."""
    max_message_characters: int = 20_000
    """Of a question."""
    max_chat_characters: int = 200_000
    """Of all messages of an OpenAI request together: such clients tell the whole conversation each time."""
    max_turns_per_principal: int = 8
    """Running at the same time; all who use the public principal count as one."""
    max_turns: int = 200
    """Running at the same time, of everybody."""
    max_threads_per_page: int = 100
    grace_seconds: float = 10.0
    """For which a streamed turn goes on when nobody reads it, so that a lost connection can be taken up again."""
    kept_seconds: float = 60.0
    """For which the events of a finished turn can still be read."""
    heartbeat_seconds: float = 15.0


class TurnSlots:
    """Counts running turns. Belongs to one event loop."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._running: Counter[str] = Counter()

    def __len__(self) -> int:
        return self._running.total()

    @contextmanager
    def one_for(self, owner: str) -> Iterator[None]:
        """A running turn of the owner. Raises Problem 429 where there are too many."""
        if self._running[owner] >= self._limits.max_turns_per_principal or len(self) >= self._limits.max_turns:
            self._forget(owner)
            raise Problem(
                429, "too_many_turns", "too many turns are running", "wait for one to end", headers={"Retry-After": "2"}
            )
        self._running[owner] += 1
        try:
            yield
        finally:
            self._running[owner] -= 1
            self._forget(owner)

    def _forget(self, owner: str) -> None:
        if not self._running[owner]:
            del self._running[owner]
