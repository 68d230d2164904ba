"""Threads erased, each held meanwhile as a turn holds it: one erased under a running turn would come back."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime, timedelta
from typing import Any, TypeVar

from langgraph.checkpoint.base import BaseCheckpointSaver

from graphrag_agent.conversation.process_locks import database_of, held_against_others, process_locks_of
from graphrag_agent.conversation.running_turns import RunningTurn, WhenBusy, running_turns_of
from graphrag_agent.errors import ThreadBusyError, ThreadError
from graphrag_agent.finishing import finish
from graphrag_agent.identity import PUBLIC_OWNER
from graphrag_agent.persistence.rows import index_of
from graphrag_agent.persistence.steps import ThreadHead
from graphrag_agent.persistence.threads import all_heads, expired_heads

T = TypeVar("T")
HELD = 100
"""Threads held and erased in one go: a PostgreSQL server has room for some thousand locks in all."""


async def delete_threads(saver: BaseCheckpointSaver[Any], threads: Sequence[str], *, owner: str | None) -> list[str]:
    """Delete the threads; which of them were there. Another's are left alone.

    This process's turns on them are stopped first, those that wait among them; an answer that is out is waited for.
    Raises ThreadBusyError where another process runs a turn on one. `saver` is the one that the agent was given.

    In a SQLite file their bytes are gone afterwards. PostgreSQL keeps them in its tables until `compact`, and in its
    write-ahead log and backups for as long as it is told to.
    """
    gone: list[str] = []
    for part in _parts(sorted(set(threads))):  # sorted: two who delete the same never wait for each other
        async with AsyncExitStack() as held:
            ours = [thread for thread in part if await _take_for_deletion(saver, thread, owner, held)]
            index = index_of(saver)
            heads = [head for thread in ours if (head := await index.head(thread)) and owner in (None, head.owner)]
            gone += await _erase(saver, [(head.thread, None) for head in heads])
    return gone


async def delete_threads_of(saver: BaseCheckpointSaver[Any], owner: str) -> list[str]:
    """Delete all threads of the owner, as `delete_threads` does; their ids."""
    return await delete_threads(saver, [head.thread for head in await all_heads(saver, owner)], owner=owner)


async def expire_threads(
    saver: BaseCheckpointSaver[Any],
    *,
    older_than: timedelta | None = None,
    keep: int | None = None,
    owner: str | None = None,
    now: datetime | None = None,
) -> list[str]:
    """Delete what was last used longer ago than that, and all but the `keep` last used; the ids that went.

    With `owner` only that owner's count and go. A thread on which a turn runs, or that is written to meanwhile, stays.
    """
    gone: list[str] = []
    for part in _parts(expired_heads(await all_heads(saver, owner), older_than=older_than, keep=keep, now=now)):
        async with AsyncExitStack() as held:
            free = [head for head in part if await _take_if_free(saver, head, held)]
            gone += await _erase(saver, [(head.thread, head.checkpoint) for head in free])
    return gone


async def _take_for_deletion(
    saver: BaseCheckpointSaver[Any], thread: str, owner: str | None, held: AsyncExitStack
) -> bool:
    """False where the thread is another's."""
    turns = running_turns_of(database_of(saver)).on(thread)
    for turn in turns:
        if owner in (None, turn.owner):
            turn.stop()
    whose = owner or (turns[0].owner if turns else PUBLIC_OWNER)
    try:
        await held.enter_async_context(_held(saver, thread, whose, "wait"))
    except ThreadBusyError:
        raise ThreadBusyError(f"thread {thread!r} has a running turn in another process; delete it later") from None
    except ThreadError:
        return False
    return True


async def _take_if_free(saver: BaseCheckpointSaver[Any], head: ThreadHead, held: AsyncExitStack) -> bool:
    try:
        await held.enter_async_context(_held(saver, head.thread, head.owner, "refuse"))
    except ThreadError:
        return False
    return True


@asynccontextmanager
async def _held(saver: BaseCheckpointSaver[Any], thread: str, owner: str, when_busy: WhenBusy) -> AsyncIterator[None]:
    """The thread is ours inside the block. Other processes' turns, which can't be stopped, are never waited for."""
    turn = RunningTurn(uuid.uuid4().hex, thread, owner)
    async with (
        running_turns_of(database_of(saver)).hold(turn, when_busy),
        held_against_others(process_locks_of(saver), thread, "refuse"),
    ):
        yield


async def _erase(saver: BaseCheckpointSaver[Any], threads: Sequence[tuple[str, str | None]]) -> list[str]:
    return await finish(index_of(saver).erase(threads))  # it goes on in a thread, so the locks are kept until then


def _parts(items: Sequence[T]) -> Iterator[Sequence[T]]:
    return (items[start : start + HELD] for start in range(0, len(items), HELD))
