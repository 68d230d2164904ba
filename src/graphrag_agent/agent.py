"""`RagAgent`: questions in, cited answers out, over the graph and nothing but the graph."""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from langchain_core.messages import BaseMessage
from langchain_core.tools import BaseTool
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import ValidationError

from graphrag_agent.assembly import RagGraph, budget_from, build_loop, compile_loop
from graphrag_agent.context import AgentContext, Budget
from graphrag_agent.conversation.answer import Answer, Collected
from graphrag_agent.conversation.cited_places import LocatedCitation, locate_citations
from graphrag_agent.conversation.starts import Ask, Edit, Regenerate, Resume, Start
from graphrag_agent.conversation.thread_history import Branch
from graphrag_agent.conversation.turns import Durability, TurnRules, Turns
from graphrag_agent.errors import GraphragError, SettingsError, ThreadError
from graphrag_agent.events import ErrorRaised, Event, id_after
from graphrag_agent.graph.modes import Mode, resolve_mode
from graphrag_agent.identity import Principal, acting_as, acting_principal, owner_of
from graphrag_agent.models.composed import ChatModel
from graphrag_agent.models.factory import resolve_chat_model
from graphrag_agent.persistence.kept_messages import build_serializer
from graphrag_agent.retrieval.scope import Scope
from graphrag_agent.settings import Settings, load_settings
from graphrag_agent.streaming.own_task import in_own_task
from graphrag_agent.sync_edge import iterator_twin, sync_twin
from graphrag_agent.tool_assembly import registry_from
from graphrag_agent.tools.knowledge_search import Readable, Searchable
from graphrag_agent.tools.spec import ToolSpec

ContextLike = AgentContext | Mapping[str, Any] | None


class RagAgent:
    """A thin facade over `build_rag_graph`; `.graph` is the compiled graph itself.

    Each way to begin a turn has two forms: `ask` and the like give the answer, `stream` and the like its events.

    Without a checkpointer threads live in this process's memory. `durability`: "exit" keeps no tool result on disk,
    "async" and "sync" let a killed turn be resumed. A thread belongs to the principal (tenant and user) who began it;
    to others it is unknown. One turn at a time runs on a thread: another is refused, or waits (`Settings.when_busy`).
    """

    def __init__(
        self,
        *,
        model: ChatModel | str | None = None,
        knowledge: Searchable | None = None,
        tools: Iterable[ToolSpec | BaseTool | Callable[..., Any]] = (),
        mode: str | Mode | None = None,
        budget: Budget | None = None,
        checkpointer: BaseCheckpointSaver[Any] | None = None,
        durability: Durability = "exit",
        settings: Settings | None = None,
    ) -> None:
        settings = settings or load_settings()
        checkpointer = checkpointer or InMemorySaver(serde=build_serializer())  # long threads are read cheaply
        mode = resolve_mode(settings.mode if mode is None else mode)
        model = model or mode.model or settings.model
        chat_model = resolve_chat_model(model)
        registry = registry_from(settings, knowledge, tools, model=chat_model, mode=mode)
        loop = build_loop(chat_model, registry, mode=mode, budget=budget or budget_from(settings, mode))
        self.checkpointer = checkpointer  # the graph may have a copy, which is not what its turns are known by
        self.graph: RagGraph = compile_loop(loop, checkpointer=checkpointer)
        rules = TurnRules(durability, settings.when_busy, tuple(loop.tools), settings.prune, mode.nested is not None)
        self._turns = Turns(self.graph, checkpointer, rules)
        self._knowledge = knowledge if isinstance(knowledge, Readable) else None

    async def aask(
        self,
        question: str,
        *,
        thread: str | None = None,
        branch: str | None = None,
        earlier: Sequence[BaseMessage] = (),
        context: ContextLike = None,
        principal: Principal | None = None,
    ) -> Answer:
        """The answer to the question, in a new thread or in the one named, at its newest branch or the one named.

        `earlier`: questions and answers from elsewhere that a new thread begins with; their texts are taken.
        Raises SettingsError for an empty question or a bad context, ThreadBusyError where a turn runs on the thread,
        ThreadError for a thread of somebody else's or a branch that isn't there.
        """
        return await self._collect(Ask(question, branch, earlier), _or_new(thread), context, principal)

    def astream(
        self,
        question: str,
        *,
        thread: str | None = None,
        branch: str | None = None,
        earlier: Sequence[BaseMessage] = (),
        context: ContextLike = None,
        principal: Principal | None = None,
    ) -> AsyncGenerator[Event, None]:
        """The events of the turn as they happen; the last one is `TurnEnded`, or `ErrorRaised` before the error.

        What keeps the turn from starting is raised without an event. Closing the iterator stops the turn, unless its
        answer is already out: that is left to finish.
        """
        return self._stream(Ask(question, branch, earlier), _or_new(thread), context, principal)

    async def aedit(
        self,
        message_id: str,
        text: str,
        *,
        thread: str,
        context: ContextLike = None,
        principal: Principal | None = None,
    ) -> Answer:
        """The answer to another wording of the question of that id, which keeps its id; what was there is kept.

        Raises ThreadError for an id that the thread doesn't have, or that is an answer's.
        """
        return await self._collect(Edit(message_id, text), thread, context, principal)

    def astream_edit(
        self,
        message_id: str,
        text: str,
        *,
        thread: str,
        context: ContextLike = None,
        principal: Principal | None = None,
    ) -> AsyncGenerator[Event, None]:
        """`aedit` as events."""
        return self._stream(Edit(message_id, text), thread, context, principal)

    async def aregenerate(
        self, message_id: str, *, thread: str, context: ContextLike = None, principal: Principal | None = None
    ) -> Answer:
        """Another answer to a question of the thread, named by its id or by its answer's; what was there is kept."""
        return await self._collect(Regenerate(message_id), thread, context, principal)

    def astream_regenerate(
        self, message_id: str, *, thread: str, context: ContextLike = None, principal: Principal | None = None
    ) -> AsyncGenerator[Event, None]:
        """`aregenerate` as events."""
        return self._stream(Regenerate(message_id), thread, context, principal)

    async def aresume(
        self,
        results: Mapping[str, Any],
        *,
        thread: str,
        context: ContextLike = None,
        principal: Principal | None = None,
    ) -> Answer:
        """The answer of a turn that waited for the client's tools; `results`: call id -> what the tool brought.

        A call without a result becomes an error that the model reads. Give the same context as before.
        """
        return await self._collect(Resume(results), thread, context, principal)

    def astream_resume(
        self,
        results: Mapping[str, Any],
        *,
        thread: str,
        context: ContextLike = None,
        principal: Principal | None = None,
    ) -> AsyncGenerator[Event, None]:
        """`aresume` as events."""
        return self._stream(Resume(results), thread, context, principal)

    async def astop(self, thread: str, *, principal: Principal | None = None) -> bool:
        """Stop the turn that runs on this thread, or has this turn id, in this process; False where none does.

        Its question stays in the thread, marked as cancelled; nothing else of the turn is kept. Whoever waits for it
        gets the ending "cancelled". A turn whose answer is already out is left to finish.
        """
        with _acting(principal):
            return await self._turns.stop(thread)

    async def ahistory(
        self, thread: str, *, branch: str | None = None, principal: Principal | None = None
    ) -> list[BaseMessage]:
        """The thread's questions and answers, oldest first; empty for a thread that isn't there, or isn't yours.

        They are the caller's own: what is changed in them stays out of the thread.
        """
        kept = await self._kept(thread, branch, principal)
        return [message.model_copy(deep=True) for message in kept]

    async def acitations(
        self, message_id: str, *, thread: str, branch: str | None = None, principal: Principal | None = None
    ) -> list[LocatedCitation]:
        """What an answer of the thread cites, as it reads today for the principal; stale where it is no longer that.

        Raises ThreadError for a message that the thread, or its branch, doesn't have.
        """
        kept = await self._kept(thread, branch, principal)
        message = next((message for message in kept if message.id == message_id), None)
        if message is None:
            raise ThreadError(
                f"message_id={message_id!r} is not in thread {thread!r}; the ids are those of history({thread!r})"
            )
        return await locate_citations(message, self._knowledge, Scope.of(principal or acting_principal()))

    async def abranches(self, thread: str, *, principal: Principal | None = None) -> list[Branch]:
        """What came of edits and other new starts in the thread, newest first; `ask(..., branch=head)` goes on."""
        return await self._turns.history.branches(thread) if await self._is_own(thread, principal) else []

    ask = sync_twin(aask)
    stream = iterator_twin(astream)
    edit = sync_twin(aedit)
    stream_edit = iterator_twin(astream_edit)
    regenerate = sync_twin(aregenerate)
    stream_regenerate = iterator_twin(astream_regenerate)
    resume = sync_twin(aresume)
    stream_resume = iterator_twin(astream_resume)
    stop = sync_twin(astop)
    history = sync_twin(ahistory)
    citations = sync_twin(acitations)
    branches = sync_twin(abranches)

    async def _kept(self, thread: str, branch: str | None, principal: Principal | None) -> list[BaseMessage]:
        """The thread's messages, which the checkpointer's serializer gives to other readers too."""
        if not await self._is_own(thread, principal):
            return []
        if branch is not None:
            await self._turns.history.check_branch(thread, branch)
        return await self._turns.history.messages(thread, branch)

    async def _is_own(self, thread: str, principal: Principal | None) -> bool:
        """Whether the thread is there and the principal's."""
        try:
            return await self._turns.history.newest(thread, owner_of(principal or acting_principal())) is not None
        except ThreadError:
            return False

    async def _run(
        self, start: Start, emit: Callable[[Event], None], thread: str, context: ContextLike, *, with_text: bool
    ) -> None:
        if not thread.strip():
            raise ThreadError(f"thread={thread!r} is empty; leave it out for a new thread")
        await self._turns.run(start, thread, as_context(context), emit, with_text=with_text)

    def _stream(
        self, start: Start, thread: str, context: ContextLike, principal: Principal | None
    ) -> AsyncGenerator[Event, None]:
        """No generator itself: the turn is the principal's who acts at the call, whoever reads the events."""

        def run(emit: Callable[[Event], None]) -> Awaitable[None]:
            return self._run(start, emit, thread, context, with_text=True)

        with _acting(principal):
            events = in_own_task(run)
        return _with_error(events)

    async def _collect(self, start: Start, thread: str, context: ContextLike, principal: Principal | None) -> Answer:
        collected = Collected()
        with _acting(principal):
            await self._run(start, collected.add, thread, context, with_text=False)
        return collected.answer(thread)


def _or_new(thread: str | None) -> str:
    return new_thread() if thread is None else thread


def new_thread() -> str:
    """A fresh thread id."""
    return uuid.uuid4().hex


def as_context(given: ContextLike) -> AgentContext:
    """The context from what a caller gave. Raises SettingsError that names the bad field."""
    if isinstance(given, AgentContext):
        return given
    try:
        return AgentContext.model_validate(given or {})
    except ValidationError as error:
        problems = (f"{'.'.join(map(str, item['loc']))}={item['input']!r}: {item['msg']}" for item in error.errors())
        raise SettingsError(f"bad context: {'; '.join(problems)}") from None


async def _with_error(events: AsyncGenerator[Event, None]) -> AsyncGenerator[Event, None]:
    """The events, and after them the error that ended the turn, as an event before it is raised."""
    last = ""
    try:
        async for event in events:
            last = event.event_id
            yield event
    except Exception as error:
        if last:
            told = str(error) if isinstance(error, GraphragError) else type(error).__name__
            yield ErrorRaised(told, event_id=id_after(last))
        raise
    finally:
        await events.aclose()


def _acting(principal: Principal | None) -> AbstractContextManager[Any]:
    return acting_as(principal) if principal else nullcontext()
