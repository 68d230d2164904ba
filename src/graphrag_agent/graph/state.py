"""The graph's channels and their reducer.

`messages` holds questions and committed answers and nothing else; `turn` the AI and tool messages of the running turn.
Both are Delta channels: a checkpoint stores what was written, not the whole list (docs/decisions.md has the sizes).
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Annotated, Any

from langchain_core.messages import AnyMessage, BaseMessage, RemoveMessage, convert_to_messages
from langgraph.channels import DeltaChannel, UntrackedValue
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Overwrite
from typing_extensions import TypedDict  # pydantic, and so Studio, reads no schema from typing's before Python 3.12

from graphrag_agent.whole_characters import whole_characters

SNAPSHOT_FREQUENCY = 60
"""Updates of `messages` (two a turn) between full copies in a checkpoint. Every turn reads back to the last copy, and
copies are as long as the thread: with 30 turn 800 adds 46 KB to a SQLite file, with 60 23 KB, with 100 17 KB; but with
100 turn 50 costs 1.37x the CPU of turn 1 where LangGraph's own saver decodes each message anew (durability sync)."""


def merge_messages(state: Sequence[BaseMessage], writes: Sequence[Any]) -> list[BaseMessage]:
    """Messages by id: a known id replaces in place, a new one is appended, RemoveMessage removes.

    A Delta channel replays raw writes whenever it is read, so a missing id is derived from place and content.
    """
    merged = list(state)
    place = {message.id: at for at, message in enumerate(merged)}
    for write in writes:
        for message in convert_to_messages(write if isinstance(write, list) else [write]):
            if isinstance(message, RemoveMessage):
                gone = message.id
                merged = [] if gone == REMOVE_ALL_MESSAGES else [kept for kept in merged if kept.id != gone]
                place = {kept.id: at for at, kept in enumerate(merged)}
                continue
            if not message.id:
                message = message.model_copy(update={"id": _derived_id(message, len(merged), place)})
            if message.id in place:
                merged[place[message.id]] = message
            else:
                place[message.id] = len(merged)
                merged.append(message)
    return merged


def _derived_id(message: BaseMessage, at: int, taken: dict[str | None, int]) -> str:
    while True:
        name = str(uuid.uuid5(uuid.NAMESPACE_OID, whole_characters(f"{at}|{message.type}|{message.content}")))
        if name not in taken:
            return name
        at += 1


class TurnInput(TypedDict):
    """What a caller gives: the new question, as a message."""

    messages: Annotated[list[AnyMessage], DeltaChannel(merge_messages, snapshot_frequency=SNAPSHOT_FREQUENCY)]


class TurnOutput(TurnInput, total=False):
    """What a caller gets: the thread's questions and answers, and how the last turn went."""

    outcome: dict[str, Any]


class TurnState(TurnOutput, total=False):
    """All channels. Those below, but for `summary`, are emptied by `commit_answer` and again by `start_turn`."""

    turn: Annotated[list[AnyMessage], DeltaChannel(merge_messages)]
    ledger: dict[str, str]
    """Fingerprint of a call -> id of the call that ran for it."""
    budget: dict[str, Any]
    """What the turn has spent: policy.budget.Spent as a dict."""
    ending: str
    """Set when the turn must stop: max_rounds, max_calls, max_seconds, no_new_evidence, refused, model_error."""
    summary: dict[str, Any]
    """Of the thread's beginning, written by the model: prompts.digest.Summary as a dict. Stays when a turn ends."""
    early: Annotated[dict[str, Any], UntrackedValue]
    """Call id -> EarlyCall. Never stored: after a resume the calls are simply run."""


def emptied(state: TurnState) -> dict[str, Any]:
    """The update that empties what a turn leaves behind; what is empty is not written, which costs a row each."""
    empty: dict[str, Any] = {"turn": Overwrite([]), "ledger": {}, "ending": "", "outcome": {}}
    return {name: value for name, value in empty.items() if state.get(name)}
