"""What happens in a turn, as typed events. Wire formats are adapters over these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, get_args

from graphrag_agent.citations import Citation
from graphrag_agent.errors import SettingsError

EVIDENCE_IDS = "graphrag_evidence_ids"
"""Under this name the metadata of a model call has the ids that its text may cite, with blanks between."""

CUT_OFF = "cut off: the model ended the answer at its limit of tokens; raise max_tokens, or ask for less"
"""A warning in an outcome."""


class LoopEvent(dict[str, Any]):
    """What the loop writes to its graph's custom stream.

    A tool of the user's may write there too, any dict it likes; one of ours is told from that by its class alone.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class AnyEvent:
    """What all events have."""

    event_id: str = ""
    """Turn id, ":" and the event's number in its turn, from 1; empty before a turn has emitted it."""

    def as_dict(self) -> dict[str, Any]:
        """JSON-like form, `type` included; `event_from_dict` reads it."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class TurnStarted(AnyEvent):
    """The first event of a turn."""

    thread: str
    question: str
    """Empty where a turn goes on with the results of the client's tools."""
    turn: str = ""
    """The turn's id; `stop` takes it."""
    question_id: str = ""
    """Id of the question in the thread; `edit` and `regenerate` take it."""
    type: Literal["turn_started"] = "turn_started"


@dataclass(frozen=True, slots=True)
class TextDelta(AnyEvent):
    """A piece of text that the model writes; the final text comes with `AnswerReady`."""

    text: str
    message_id: str
    type: Literal["text_delta"] = "text_delta"


@dataclass(frozen=True, slots=True)
class ThinkingDelta(AnyEvent):
    """A piece of what the model thinks before it answers; never part of the answer or of the thread."""

    text: str
    message_id: str
    type: Literal["thinking_delta"] = "thinking_delta"


@dataclass(frozen=True, slots=True)
class ToolStart(AnyEvent):
    """A tool call begins to run."""

    id: str
    name: str
    arguments: Mapping[str, Any]
    parent: str = ""
    """Id of the call whose nested turn makes this one; empty for a call of the turn itself."""
    type: Literal["tool_start"] = "tool_start"

    @property
    def query(self) -> str:
        """What is searched for, where the tool takes a query."""
        return str(self.arguments.get("query", ""))


@dataclass(frozen=True, slots=True)
class ToolProgress(AnyEvent):
    """A long tool call has done a part of its work."""

    id: str
    name: str
    done: int
    total: int
    """Parts; may grow while it works."""
    parent: str = ""
    """As in `ToolStart`."""
    type: Literal["tool_progress"] = "tool_progress"


@dataclass(frozen=True, slots=True)
class ToolEnd(AnyEvent):
    """A tool call has its result."""

    id: str
    name: str
    found: int
    """Pieces of evidence it brought."""
    is_error: bool
    seconds: float
    parent: str = ""
    """As in `ToolStart`."""
    type: Literal["tool_end"] = "tool_end"


@dataclass(frozen=True, slots=True)
class ClientToolsRequested(AnyEvent):
    """The turn stops until the client has run these calls; the last event until it is resumed."""

    calls: tuple[Mapping[str, Any], ...]
    """Each with id, name and args."""
    type: Literal["client_tools"] = "client_tools"


@dataclass(frozen=True, slots=True)
class CitationFound(AnyEvent):
    """The answer points to this; one event for each citation, before `AnswerReady`."""

    citation: Citation
    type: Literal["citation"] = "citation"


@dataclass(frozen=True, slots=True)
class AnswerReady(AnyEvent):
    """The final text, with the citations that hold."""

    text: str
    message_id: str
    citations: tuple[Citation, ...]
    type: Literal["answer"] = "answer"


@dataclass(frozen=True, slots=True)
class TurnEnded(AnyEvent):
    """The last event of a turn that was not cut off."""

    outcome: Mapping[str, Any] = field(default_factory=dict)
    type: Literal["turn_ended"] = "turn_ended"


@dataclass(frozen=True, slots=True)
class ErrorRaised(AnyEvent):
    """The turn broke off with an error; the last event."""

    message: str
    type: Literal["error"] = "error"


Event = (
    TurnStarted
    | TextDelta
    | ThinkingDelta
    | ToolStart
    | ToolProgress
    | ToolEnd
    | ClientToolsRequested
    | CitationFound
    | AnswerReady
    | TurnEnded
    | ErrorRaised
)

_CLASSES = {kind.__dataclass_fields__["type"].default: kind for kind in get_args(Event)}


def event_from_dict(given: Mapping[str, Any]) -> Event:
    """The event whose `as_dict`, or JSON of it, this is; unknown fields of later versions are ignored.

    Raises SettingsError for an unknown type and for fields that are missing or can't be read.
    """
    if (kind := _CLASSES.get(str(given.get("type")))) is None:
        raise SettingsError(f"type={given.get('type')!r} is no event; there are: {', '.join(_CLASSES)}")
    values = {item.name: given[item.name] for item in fields(kind) if item.name in given}
    try:
        if "citation" in values:
            values["citation"] = Citation(**values["citation"])
        if "citations" in values:
            values["citations"] = tuple(Citation(**citation) for citation in values["citations"])
        if "calls" in values:
            values["calls"] = tuple(values["calls"])
        event: Event = kind(**values)
    except TypeError as error:
        raise SettingsError(f"an event of type {given['type']!r} can't be read: {error}") from None
    return event


def id_after(event_id: str) -> str:
    """The `event_id` of what comes next in the same turn."""
    turn, _, number = event_id.rpartition(":")
    return f"{turn}:{int(number) + 1}"
