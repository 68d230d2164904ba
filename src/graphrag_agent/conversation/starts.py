"""How a turn begins: a question, another wording, the same question again, the results of a client's tools."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.types import Command

from graphrag_agent.conversation.running_turns import unknown_thread
from graphrag_agent.conversation.thread_history import ThreadHistory
from graphrag_agent.errors import SettingsError, ThreadError
from graphrag_agent.graph.prompts.history import CANCELLED


@dataclass(frozen=True, slots=True)
class Ask:
    """A new question at the end of the thread, or of one of its branches."""

    question: str
    branch: str | None = None
    earlier: Sequence[BaseMessage] = ()
    """Questions and answers from elsewhere that a new thread begins with."""

    def __post_init__(self) -> None:
        _refuse_empty("question", self.question)


@dataclass(frozen=True, slots=True)
class Edit:
    """Another wording for a question of the thread; a branch from before its turn."""

    message_id: str
    text: str

    def __post_init__(self) -> None:
        _refuse_empty("text", self.text)


@dataclass(frozen=True, slots=True)
class Regenerate:
    """The same question again, named by itself or by its answer; a branch from before its turn."""

    message_id: str


@dataclass(frozen=True, slots=True)
class Resume:
    """Call id -> what the client's tool brought."""

    results: Mapping[str, Any]


Start = Ask | Edit | Regenerate | Resume


@dataclass(frozen=True, slots=True)
class Begun:
    """What the graph is run with."""

    run_input: Any
    question: HumanMessage | None
    head: str | None = None
    """The checkpoint to go on from; None for the newest."""

    @property
    def question_id(self) -> str:
        """Id of the question in the thread; empty for a resumed turn."""
        return str(self.question.id) if self.question else ""


async def begin(start: Start, history: ThreadHistory, thread: str) -> Begun:
    """Where and with what the turn starts. Raises ThreadError for a message or branch that the thread doesn't have."""
    if isinstance(start, Resume):
        if not await history.is_there(thread):
            raise unknown_thread(thread)
        return Begun(Command(resume={"results": dict(start.results)}), None)
    if isinstance(start, Ask):
        if start.branch is not None:
            await history.check_branch(thread, start.branch)
        question = HumanMessage(start.question, id=str(uuid.uuid4()))
        if not start.earlier:
            return _asking(question, start.branch)
        if await history.messages(thread):
            raise ThreadError(f"thread {thread!r} has a history of its own; leave out 'earlier', or take a new thread")
        earlier = [_with_id(message) for message in start.earlier]
        return Begun({"messages": [*earlier, question]}, question)
    message, question, head = await history.find(thread, start.message_id)
    if isinstance(start, Regenerate):
        kept = {name: value for name, value in question.additional_kwargs.items() if name != "ending"}
        return _asking(question.model_copy(update={"additional_kwargs": kept}), head)
    if message is not question:
        raise ThreadError(
            f"message_id={start.message_id!r} is an answer; edit takes a question's id, regenerate either"
        )
    return _asking(HumanMessage(start.text, id=question.id), head)


def cancelled(question: HumanMessage) -> HumanMessage:
    """The question, marked as one that got no answer."""
    return question.model_copy(update={"additional_kwargs": {**question.additional_kwargs, "ending": CANCELLED}})


def _asking(question: HumanMessage, head: str | None) -> Begun:
    return Begun({"messages": [question]}, question, head)


def _with_id(message: BaseMessage) -> BaseMessage:
    if not isinstance(message, HumanMessage | AIMessage):
        raise SettingsError(f"earlier has a {type(message).__name__}; give HumanMessage and AIMessage only")
    kind = HumanMessage if isinstance(message, HumanMessage) else AIMessage
    return kind(message.text, id=str(uuid.uuid4()))  # its text only: calls and metadata of elsewhere mean nothing here


def _refuse_empty(name: str, text: str) -> None:
    if not text.strip():
        raise SettingsError(f"{name}={text!r} is empty; say what you want to know")
