"""What happens in a turn, as typed events. Wire formats are adapters over these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from graphrag_agent.citations import Citation


@dataclass(frozen=True, slots=True)
class TurnStarted:
    """The first event of a turn."""

    thread: str
    question: str
    type: Literal["turn_started"] = "turn_started"


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of text that the model writes; the final text comes with `AnswerReady`."""

    text: str
    message_id: str
    type: Literal["text_delta"] = "text_delta"


@dataclass(frozen=True, slots=True)
class ThinkingDelta:
    """A piece of what the model thinks before it answers; never part of the answer or of the thread."""

    text: str
    message_id: str
    type: Literal["thinking_delta"] = "thinking_delta"


@dataclass(frozen=True, slots=True)
class ToolStart:
    """A tool call begins to run."""

    id: str
    name: str
    arguments: Mapping[str, Any]
    type: Literal["tool_start"] = "tool_start"

    @property
    def query(self) -> str:
        """What is searched for, where the tool takes a query."""
        return str(self.arguments.get("query", ""))


@dataclass(frozen=True, slots=True)
class ToolEnd:
    """A tool call has its result."""

    id: str
    name: str
    found: int
    """Pieces of evidence it brought."""
    is_error: bool
    seconds: float
    type: Literal["tool_end"] = "tool_end"


@dataclass(frozen=True, slots=True)
class ClientToolsRequested:
    """The turn stops until the client has run these calls; the last event until it is resumed."""

    calls: tuple[Mapping[str, Any], ...]
    """Each with id, name and args."""
    type: Literal["client_tools"] = "client_tools"


@dataclass(frozen=True, slots=True)
class CitationFound:
    """The answer points to this; one event for each citation, before `AnswerReady`."""

    citation: Citation
    type: Literal["citation"] = "citation"


@dataclass(frozen=True, slots=True)
class AnswerReady:
    """The final text, with the citations that hold."""

    text: str
    message_id: str
    citations: tuple[Citation, ...]
    type: Literal["answer"] = "answer"


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """The last event of a turn that was not cut off."""

    outcome: Mapping[str, Any] = field(default_factory=dict)
    type: Literal["turn_ended"] = "turn_ended"


@dataclass(frozen=True, slots=True)
class ErrorRaised:
    """The turn broke off with an error; the last event."""

    message: str
    type: Literal["error"] = "error"


Event = (
    TurnStarted
    | TextDelta
    | ThinkingDelta
    | ToolStart
    | ToolEnd
    | ClientToolsRequested
    | CitationFound
    | AnswerReady
    | TurnEnded
    | ErrorRaised
)
