"""The threads of a checkpointer: whose they are, listed, exported. `conversation.erasing` deletes them.

A thread of one principal is never told to another: give `owner` (`identity.owner_of`) wherever somebody asks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.base import BaseCheckpointSaver

from graphrag_agent.errors import ThreadError
from graphrag_agent.persistence.rows import index_of
from graphrag_agent.persistence.steps import ThreadHead
from graphrag_agent.persistence.time_ids import time_of

TITLE_CHARACTERS = 80
PAGE = 200
"""Threads looked at in one go where all are."""


@dataclass(frozen=True, slots=True)
class ThreadSummary:
    """One thread in a list."""

    id: str
    owner: str
    used: datetime | None
    """When it was last written to; None for a checkpoint whose id tells no time."""
    turns: int
    title: str
    """The first question, shortened."""


@dataclass(frozen=True, slots=True)
class ThreadPage:
    """Some threads, the last used first."""

    threads: tuple[ThreadSummary, ...]
    next: str
    """Give it as `after` for the next page; empty at the end."""


async def thread_owner(saver: BaseCheckpointSaver[Any], thread: str) -> str | None:
    """Whose thread it is; None for a thread that isn't there."""
    head = await index_of(saver).head(thread)
    return head.owner if head else None


async def list_threads(
    graph: Any, saver: BaseCheckpointSaver[Any], *, owner: str | None, limit: int = 50, after: str = ""
) -> ThreadPage:
    """The owner's threads; everybody's for None, which is for operators only. `graph` is compiled over the saver."""
    heads = await index_of(saver).heads(owner=owner, limit=limit + 1, before=after)
    summaries = [await _summary(graph, head) for head in heads[:limit]]
    return ThreadPage(tuple(summaries), heads[limit - 1].checkpoint if len(heads) > limit else "")


async def export_thread(
    graph: Any, saver: BaseCheckpointSaver[Any], thread: str, *, owner: str | None
) -> dict[str, Any]:
    """All that was said in the thread as JSON-like values, every branch of it, the newest last.

    Raises ThreadError for a thread that isn't there or is another's.
    """
    index = index_of(saver)
    head = await index.head(thread)
    if head is None or owner not in (None, head.owner):
        raise ThreadError(f"there is no thread {thread!r}")
    links = await index.links(thread)
    leaves = sorted(set(links) - set(links.values()))
    return {
        "thread": thread,
        "owner": head.owner,
        "used": _as_text(time_of(head.checkpoint)),
        "branches": [await _branch(graph, thread, leaf) for leaf in leaves],
    }


async def compact(saver: BaseCheckpointSaver[Any]) -> None:
    """Give the room of what was deleted back to the disk; on PostgreSQL this also ends the bytes in its tables.

    Nobody can write meanwhile; it takes as long as writing all threads anew.
    """
    await index_of(saver).compact()


async def all_heads(saver: BaseCheckpointSaver[Any], owner: str | None) -> list[ThreadHead]:
    """The owner's threads, everybody's for None; the last used first."""
    index = index_of(saver)
    heads: list[ThreadHead] = []
    while more := await index.heads(owner=owner, limit=PAGE, before=heads[-1].checkpoint if heads else ""):
        heads += more
    return heads


def expired_heads(
    heads: Sequence[ThreadHead], *, older_than: timedelta | None, keep: int | None, now: datetime | None
) -> list[ThreadHead]:
    """Those last used longer ago than that, and all but the first `keep`."""
    oldest = None if older_than is None else (now or datetime.now(UTC)) - older_than
    beyond = set(heads[keep:]) if keep is not None else set()
    late = {head for head in heads if oldest and (used := time_of(head.checkpoint)) and used < oldest}
    return [head for head in heads if head in beyond | late]


async def _summary(graph: Any, head: ThreadHead) -> ThreadSummary:
    questions = [m for m in await _messages(graph, head.thread, head.checkpoint) if m.type == "human"]
    title = " ".join(questions[0].text.split()) if questions else ""
    if len(title) > TITLE_CHARACTERS:
        title = f"{title[: TITLE_CHARACTERS - 1].rstrip()}…"
    return ThreadSummary(head.thread, head.owner, time_of(head.checkpoint), len(questions), title)


async def _messages(graph: Any, thread: str, checkpoint: str) -> list[BaseMessage]:
    place = {"thread_id": thread, "checkpoint_ns": "", "checkpoint_id": checkpoint}
    state = await graph.aget_state({"configurable": place})
    return list(state.values.get("messages") or [])


async def _branch(graph: Any, thread: str, leaf: str) -> dict[str, Any]:
    messages = await _messages(graph, thread, leaf)
    return {"head": leaf, "at": _as_text(time_of(leaf)), "messages": [_exported(message) for message in messages]}


def _exported(message: BaseMessage) -> dict[str, Any]:
    said = {"id": message.id, "role": "user" if message.type == "human" else "assistant", "text": message.text}
    told: Mapping[str, Any] = {**message.additional_kwargs, **message.response_metadata}
    # copies: the messages may be those that the next prompt is made of
    return said | {name: deepcopy(told[name]) for name in ("ending", "citations", "outcome") if name in told}


def _as_text(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment else None
