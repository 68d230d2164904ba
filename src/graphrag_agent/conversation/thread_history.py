"""What the checkpoints of a thread say: whose it is, which branches it has, where a turn can be taken up again."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple, empty_checkpoint
from langgraph.graph.state import CompiledStateGraph

from graphrag_agent.conversation.running_turns import unknown_thread
from graphrag_agent.errors import ThreadError
from graphrag_agent.identity import OWNER_KEY, PUBLIC_OWNER
from graphrag_agent.persistence import steps
from graphrag_agent.retrieval.scope import is_storable


@dataclass(frozen=True, slots=True)
class Branch:
    """One line of a thread: what came of editing, regenerating or going on from an earlier point."""

    head: str
    """Id of its last checkpoint; `ask(..., branch=head)` goes on from there."""
    question: str
    """Its last question."""
    answer: str
    """The answer to it; empty where that turn was stopped."""
    turns: int
    at: str
    """When that turn ended: ISO 8601, UTC."""
    is_current: bool
    """Whether a question without `branch` goes on from here."""


class ThreadHistory:
    """Reads one graph's threads."""

    def __init__(self, graph: CompiledStateGraph[Any, Any, Any, Any], checkpointer: BaseCheckpointSaver[Any]) -> None:
        self._graph = graph
        self._checkpointer = checkpointer

    async def newest(self, thread: str, owner: str) -> CheckpointTuple | None:
        """The thread's newest checkpoint; None where it has none. Raises ThreadError if the thread is another's."""
        newest = await self._checkpointer.aget_tuple(config_of(thread))
        if newest is not None and (newest.metadata or {}).get(OWNER_KEY, PUBLIC_OWNER) != owner:
            raise unknown_thread(thread)
        return newest

    async def is_there(self, thread: str) -> bool:
        """Whether anything was kept of the thread."""
        return await self._checkpointer.aget_tuple(config_of(thread)) is not None

    async def values(self, thread: str, head: str | None = None) -> Mapping[str, Any]:
        """The channels at this checkpoint, or at the newest one."""
        snapshot = await self._graph.aget_state(config_of(thread, head))
        values: Mapping[str, Any] = snapshot.values
        return values

    async def messages(self, thread: str, head: str | None = None) -> list[BaseMessage]:
        """Questions and answers at this checkpoint, or at the newest one, oldest first."""
        return list((await self.values(thread, head)).get("messages") or [])

    async def branches(self, thread: str) -> list[Branch]:
        """The thread's branches by their last turn, newest first. What was broken off is no branch."""
        saved = await self._checkpoints(thread)
        parents = {id_: _parent_of(item) for id_, item in saved.items()}
        heads = {id_: item for id_, item in saved.items() if is_finished(item)}
        continued = {_nearest(parents, id_, heads) for id_ in heads}
        newest = next(iter(saved), "")
        current = newest if newest in heads else _nearest(parents, newest, heads)
        found = []
        for head in heads:
            messages: Sequence[BaseMessage] = [] if head in continued else await self.messages(thread, head)
            if messages:
                found.append(_branch(head, saved[head].checkpoint["ts"], messages, is_current=head == current))
        return found

    async def check_branch(self, thread: str, head: str) -> None:
        """Raises ThreadError unless a turn can go on from this checkpoint."""
        saved = await self._checkpointer.aget_tuple(config_of(thread, head))
        if saved is None or saved.checkpoint["id"] != head or not is_finished(saved):
            raise ThreadError(f"branch={head!r} is no head of thread {thread!r}; branches({thread!r}) lists them")

    async def find(self, thread: str, message_id: str) -> tuple[BaseMessage, HumanMessage, str]:
        """The message, its turn's question, and the checkpoint before that turn.

        The newest branch that has the message counts. Raises ThreadError where none has it.
        """
        saved = await self._checkpoints(thread)
        for tip in _tips(saved):
            messages = await self.messages(thread, tip)
            place = next((at for at, message in enumerate(messages) if message.id == message_id), None)
            if place is None:
                continue
            asked = next((message for message in messages[place::-1] if isinstance(message, HumanMessage)), None)
            if asked is None:
                raise ThreadError(f"message_id={message_id!r} in thread {thread!r} answers no question; give another")
            return messages[place], asked, await self._before(thread, saved, tip, str(asked.id))
        raise ThreadError(
            f"message_id={message_id!r} is not in thread {thread!r}; the ids are those of history({thread!r})"
        )

    async def _before(self, thread: str, saved: Mapping[str, CheckpointTuple], tip: str, question: str) -> str:
        """The last finished checkpoint on the way to the tip that lacks the question; the first one of all else."""
        chain = [tip]
        while (parent := _parent_of(saved[chain[-1]])) in saved:
            chain.append(parent)
        chain.reverse()
        low, high = 0, len(chain) - 1  # once asked, a question stays: the first checkpoint that has it is bisected
        while low < high:
            middle = (low + high) // 2
            if any(message.id == question for message in await self.messages(thread, chain[middle])):
                high = middle
            else:
                low = middle + 1
        if low == 0:  # the checkpoints before it were removed
            return await self._put_empty(thread, saved[chain[0]])
        return next((id_ for id_ in chain[low - 1 :: -1] if is_finished(saved[id_])), chain[0])

    async def _put_empty(self, thread: str, first: CheckpointTuple) -> str:
        config: RunnableConfig = {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
        owner = (first.metadata or {}).get(OWNER_KEY)
        config["metadata"] = {OWNER_KEY: owner} if owner else {}
        empty = empty_checkpoint()
        await self._checkpointer.aput(config, empty, {"source": "fork", "step": -1, "parents": {}}, {})
        return empty["id"]

    async def _checkpoints(self, thread: str) -> dict[str, CheckpointTuple]:
        """The graph's own checkpoints, newest first."""
        config: RunnableConfig = {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
        return {item.checkpoint["id"]: item async for item in self._checkpointer.alist(config)}


def checked_thread(thread: str) -> str:
    """The thread's name. Raises ThreadError for one that no database takes."""
    if "\0" in thread or not is_storable(thread):
        raise ThreadError(
            f"thread={thread!r} has a NUL or half of a character, which no database takes; name it otherwise"
        )
    return thread


def config_of(thread: str, head: str | None = None) -> RunnableConfig:
    """The config that names the thread, and a checkpoint of it. Raises ThreadError for a name that can't be kept."""
    return {"configurable": {"thread_id": checked_thread(thread), **({"checkpoint_id": head} if head else {})}}


def is_finished(saved: CheckpointTuple) -> bool:
    """Whether nothing was left to run. The stub that durability "exit" begins with has no metadata and no turn."""
    metadata = saved.metadata or {}
    return bool(metadata.get("source")) and steps.is_finished(metadata, saved.checkpoint["channel_values"])


def _parent_of(saved: CheckpointTuple) -> str:
    return str(((saved.parent_config or {}).get("configurable") or {}).get("checkpoint_id", ""))


def _nearest(parents: Mapping[str, str], id_: str, heads: Container[str]) -> str:
    """The closest ancestor among the heads; empty where there is none."""
    id_ = parents.get(id_, "")
    while id_ and id_ not in heads:
        id_ = parents.get(id_, "")
    return id_


def _tips(saved: Mapping[str, CheckpointTuple]) -> list[str]:
    """Checkpoints from which nothing went on, newest first."""
    parents = {_parent_of(item) for item in saved.values()}
    return [id_ for id_ in saved if id_ not in parents]


def _branch(head: str, at: str, messages: Sequence[BaseMessage], *, is_current: bool) -> Branch:
    questions = [place for place, message in enumerate(messages) if isinstance(message, HumanMessage)]
    last = questions[-1] if questions else 0
    answers = [message.text for message in messages[last + 1 :] if isinstance(message, AIMessage)]
    return Branch(
        head=head,
        question=messages[last].text if questions else "",
        answer=answers[-1] if answers else "",
        turns=len(questions),
        at=at,
        is_current=is_current,
    )
