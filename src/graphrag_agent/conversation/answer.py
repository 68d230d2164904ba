"""What a turn comes to for those who don't read its events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from graphrag_agent.citations import Citation
from graphrag_agent.citations.rendering import Language, as_footnotes, as_notes, as_plain
from graphrag_agent.errors import ThreadError
from graphrag_agent.events import (
    AnswerReady,
    ClientToolsRequested,
    Event,
    ToolEnd,
    ToolStart,
    TurnEnded,
    TurnStarted,
)


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
    """Empty where the turn was stopped."""
    citations: tuple[Citation, ...]
    outcome: Mapping[str, Any]
    """How the turn went: ending, rounds, calls, seconds, tokens, warnings."""
    trace: tuple[ToolCallTrace, ...]
    thread: str
    message_id: str
    pending: tuple[Mapping[str, Any], ...] = ()
    """Calls that the client must run before the turn goes on (ending client_tools): id, name, args."""
    question_id: str = ""
    """Id of the question in the thread: what `edit` and `regenerate` take. Empty for a resumed turn."""

    def as_footnotes(self, *, language: Language = "en") -> str:
        """Markdown with a footnote for each document: title, pages, headings and the words that were cited."""
        return as_footnotes(self.text, self.citations, language=language)

    def as_plain(self, *, language: Language = "en") -> str:
        """Plain text with numbers for ids, and a numbered list of the documents."""
        return as_plain(self.text, self.citations, language=language)

    def _repr_markdown_(self) -> str:
        """How a notebook shows it: the text with numbers, then the sources."""
        return as_notes(self.text, self.citations)

    def as_dict(self) -> dict[str, Any]:
        """JSON-like form, as the CLI prints it."""
        return {
            "answer": self.text,
            "citations": [asdict(citation) for citation in self.citations],
            "outcome": dict(self.outcome),
            "trace": [asdict(call) for call in self.trace],
        }


@dataclass(slots=True)
class Collected:
    """What `aask` keeps of a turn's events."""

    question_id: str = ""
    started: dict[str, ToolStart] = field(default_factory=dict)
    trace: list[ToolCallTrace] = field(default_factory=list)
    ready: AnswerReady | None = None
    pending: tuple[Mapping[str, Any], ...] = ()
    outcome: Mapping[str, Any] = field(default_factory=dict)

    def add(self, event: Event) -> None:
        """Take the event in."""
        if isinstance(event, TurnStarted):
            self.question_id = event.question_id
        elif isinstance(event, ToolStart):
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
        """The answer that the events add up to. Raises ThreadError where there is none."""
        trace, asked = tuple(self.trace), self.question_id
        if self.pending:
            told = f"Waiting for the client's tools: {', '.join(str(call['name']) for call in self.pending)}."
            return Answer(told, (), {"ending": "client_tools"}, trace, thread, "", self.pending, asked)
        if ready := self.ready:
            return Answer(ready.text, ready.citations, self.outcome, trace, thread, ready.message_id, question_id=asked)
        if self.outcome:
            return Answer("", (), self.outcome, trace, thread, "", question_id=asked)
        raise ThreadError(f"thread {thread!r}: the turn ended without an answer; a tool waits for an answer of yours")
