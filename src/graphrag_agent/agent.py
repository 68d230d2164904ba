"""`RagAgent`: questions in, cited answers out, over the graph and nothing but the graph."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.tools import BaseTool
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from pydantic import ValidationError

from graphrag_agent.assembly import RagGraph, budget_from, build_rag_graph, build_registry
from graphrag_agent.citations import Citation
from graphrag_agent.context import AgentContext, Budget
from graphrag_agent.errors import GraphragError, SettingsError, ThreadError
from graphrag_agent.events import (
    AnswerReady,
    ClientToolsRequested,
    ErrorRaised,
    Event,
    ToolEnd,
    ToolStart,
    TurnEnded,
    TurnStarted,
)
from graphrag_agent.identity import Principal, acting_as
from graphrag_agent.settings import Settings, load_settings
from graphrag_agent.streaming.from_graph import run_graph
from graphrag_agent.streaming.own_task import in_own_task
from graphrag_agent.sync_edge import iterate_sync, run_sync
from graphrag_agent.tools.knowledge_search import Searchable
from graphrag_agent.tools.spec import ToolSpec

Durability = Literal["exit", "async", "sync"]
ContextLike = AgentContext | Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class ToolCallTrace:
    """One tool call of a turn."""

    tool: str
    arguments: Mapping[str, Any]
    found: int
    """Pieces of evidence it brought."""
    is_error: bool
    seconds: float


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one question."""

    text: str
    citations: tuple[Citation, ...]
    outcome: Mapping[str, Any]
    """How the turn went: ending, rounds, calls, seconds, tokens, warnings (DESIGN 3)."""
    trace: tuple[ToolCallTrace, ...]
    thread: str
    message_id: str
    pending: tuple[Mapping[str, Any], ...] = ()
    """Calls that the client must run before the turn goes on (ending client_tools): id, name, args."""

    def _repr_markdown_(self) -> str:
        """How a notebook shows it: the text, then the sources."""
        sources = [
            f"- `[{c.id}]` {c.title}{f' > {c.heading}' if c.heading else ''} ({c.source})" for c in self.citations
        ]
        return "\n".join([self.text, "", *sources])

    def as_dict(self) -> dict[str, Any]:
        """JSON-like form, as the CLI prints it."""
        return {
            "answer": self.text,
            "citations": [asdict(citation) for citation in self.citations],
            "outcome": dict(self.outcome),
            "trace": [asdict(call) for call in self.trace],
        }


class RagAgent:
    """A thin facade over `build_rag_graph`; `.graph` is the compiled graph itself.

    Without a checkpointer threads live in this process's memory. `durability`: "exit" keeps no tool result on disk,
    "async" and "sync" let a killed turn be resumed.
    """

    def __init__(
        self,
        *,
        model: BaseChatModel | str | None = None,
        knowledge: Searchable | None = None,
        tools: Iterable[ToolSpec | BaseTool | Callable[..., Any]] = (),
        mode: str = "rag",
        budget: Budget | None = None,
        checkpointer: BaseCheckpointSaver[Any] | None = None,
        durability: Durability = "exit",
        settings: Settings | None = None,
    ) -> None:
        settings = settings or load_settings()
        self._durability = durability
        registry = build_registry(knowledge, tools, model=model or settings.model)
        self._tool_names = tuple(registry)
        self.graph: RagGraph = build_rag_graph(
            model=model or settings.model,
            tools=registry.values(),
            mode=mode,
            budget=budget or budget_from(settings),
            checkpointer=checkpointer or InMemorySaver(),
        )

    async def aask(
        self,
        question: str,
        *,
        thread: str | None = None,
        context: ContextLike = None,
        principal: Principal | None = None,
    ) -> Answer:
        """The answer to the question, in a new thread or in the one named.

        Raises SettingsError for an empty question or a bad context.
        """
        return await self._collect(_asking(question), thread or new_thread(), context, principal)

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
        resumed: Command[str] = Command(resume={"results": dict(results)})
        return await self._collect(resumed, thread, context, principal)

    async def astream(
        self,
        question: str,
        *,
        thread: str | None = None,
        context: ContextLike = None,
        principal: Principal | None = None,
    ) -> AsyncIterator[Event]:
        """The events of the turn as they happen; the last one is `TurnEnded`, or `ErrorRaised` before the error.

        Closing the iterator stops the turn.
        """
        thread = thread or new_thread()
        with acting_as(principal) if principal else nullcontext():
            run_input = _asking(question)

            def run(emit: Callable[[Event], None]) -> Awaitable[None]:
                return self._run(run_input, emit, thread, context, with_text=True)

            events = in_own_task(run)
        yield TurnStarted(thread, question)
        try:
            async for event in events:
                yield event
        except Exception as error:
            yield ErrorRaised(str(error) if isinstance(error, GraphragError) else type(error).__name__)
            raise
        finally:
            await events.aclose()

    async def ahistory(self, thread: str) -> list[BaseMessage]:
        """The thread's questions and answers, oldest first; empty for a thread that isn't there."""
        snapshot = await self.graph.aget_state({"configurable": {"thread_id": thread}})
        return list(snapshot.values.get("messages") or [])

    def ask(
        self,
        question: str,
        *,
        thread: str | None = None,
        context: ContextLike = None,
        principal: Principal | None = None,
    ) -> Answer:
        """`aask` for sync code, notebooks included."""
        return run_sync(self.aask(question, thread=thread, context=context, principal=principal))

    def stream(
        self,
        question: str,
        *,
        thread: str | None = None,
        context: ContextLike = None,
        principal: Principal | None = None,
    ) -> Iterator[Event]:
        """`astream` for sync code, notebooks included."""
        return iterate_sync(self.astream(question, thread=thread, context=context, principal=principal))

    def history(self, thread: str) -> list[BaseMessage]:
        """`ahistory` for sync code."""
        return run_sync(self.ahistory(thread))

    def resume(
        self,
        results: Mapping[str, Any],
        *,
        thread: str,
        context: ContextLike = None,
        principal: Principal | None = None,
    ) -> Answer:
        """`aresume` for sync code."""
        return run_sync(self.aresume(results, thread=thread, context=context, principal=principal))

    async def _run(
        self, run_input: Any, emit: Callable[[Event], None], thread: str, context: ContextLike, *, with_text: bool
    ) -> None:
        if not thread.strip():
            raise ThreadError(f"thread={thread!r} is empty; leave it out for a new thread")
        await run_graph(
            self.graph,
            run_input,
            emit,
            config={"configurable": {"thread_id": thread}},
            with_text=with_text,
            tool_names=self._tool_names,
            context=as_context(context),
            durability=self._durability,
        )

    async def _collect(self, run_input: Any, thread: str, context: ContextLike, principal: Principal | None) -> Answer:
        collected = _Collected()
        with acting_as(principal) if principal else nullcontext():
            await self._run(run_input, collected.add, thread, context, with_text=False)
        return collected.answer(thread)


def _asking(question: str) -> dict[str, list[HumanMessage]]:
    if not question.strip():
        raise SettingsError(f"question={question!r} is empty; say what you want to know")
    return {"messages": [HumanMessage(question)]}


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


@dataclass(slots=True)
class _Collected:
    """What `aask` keeps of a turn's events."""

    started: dict[str, ToolStart] = field(default_factory=dict)
    trace: list[ToolCallTrace] = field(default_factory=list)
    ready: AnswerReady | None = None
    pending: tuple[Mapping[str, Any], ...] = ()
    outcome: Mapping[str, Any] = field(default_factory=dict)

    def add(self, event: Event) -> None:
        if isinstance(event, ToolStart):
            self.started[event.id] = event
        elif isinstance(event, ToolEnd):
            arguments = self.started[event.id].arguments
            self.trace.append(ToolCallTrace(event.name, arguments, event.found, event.is_error, event.seconds))
        elif isinstance(event, ClientToolsRequested):
            self.pending = event.calls
        elif isinstance(event, AnswerReady):
            self.ready = event
        elif isinstance(event, TurnEnded):
            self.outcome = event.outcome

    def answer(self, thread: str) -> Answer:
        if self.pending:
            told = f"Waiting for the client's tools: {', '.join(str(call['name']) for call in self.pending)}."
            return Answer(told, (), {"ending": "client_tools"}, tuple(self.trace), thread, "", self.pending)
        if self.ready is None:
            raise ThreadError(
                f"thread {thread!r}: the turn ended without an answer; a tool waits for an answer of yours"
            )
        return Answer(
            self.ready.text, self.ready.citations, self.outcome, tuple(self.trace), thread, self.ready.message_id
        )
