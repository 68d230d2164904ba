"""Evidence that recent answers cited, given to a later turn again.

A thread keeps places, no texts, so every passage is read anew from the knowledge base under today's scope. What was
changed, deleted or is no longer allowed can't come back; its citation is stale.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from graphrag_agent.citations import Evidence
from graphrag_agent.citations.values import digest_of
from graphrag_agent.documents import SHORT_ID_LENGTHS, short_id
from graphrag_agent.errors import DocumentNotFoundError
from graphrag_agent.graph.loop import Request
from graphrag_agent.retrieval.evidence_tags import CLOSING_TAG, opening_tag
from graphrag_agent.retrieval.scope import Scope
from graphrag_agent.token_estimate import estimate_tokens
from graphrag_agent.tools.evidence_message import render_evidence
from graphrag_agent.tools.spec import ReadText

logger = logging.getLogger(__name__)

RECALLED = "earlier_evidence"
"""Name of the message in `turn` that holds it. No call asked for it, so a prompt shows it with the question."""

MARK = "graphrag_recalled"
"""In its `additional_kwargs`, which no result of a call has. The name alone tells nothing: a tool may be called so, and
the error about an unknown tool has whatever name the model wrote."""

MAX_ANSWERS, MAX_PASSAGES = 3, 12
"""Answers whose citations are looked at, and passages that are given again."""

READ_SECONDS = 2.0
"""A turn must not wait for what it may not even need."""

STALE_NOTE = "cited earlier, not available any more: search again before you rely on it"
_LABEL_CHARACTERS, _SOURCE_CHARACTERS = 1_000, 4_000
_ID = rf"^[a-z][2-9][a-z2-9]{{{SHORT_ID_LENGTHS.start - 2},{SHORT_ID_LENGTHS.stop - 3}}}$"


class _Place(BaseModel):
    """What a thread keeps of a citation. On a server a client may have written it, so everything is checked."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)

    id: str = Field(pattern=_ID)
    chunk_id: str = Field(max_length=_LABEL_CHARACTERS)
    document_id: str = Field(min_length=1, max_length=_LABEL_CHARACTERS)
    title: str = Field(max_length=_LABEL_CHARACTERS)
    source: str = Field(max_length=_SOURCE_CHARACTERS)
    page: int | None
    heading: str = Field(max_length=_LABEL_CHARACTERS)
    start: int = Field(ge=0)
    end: int
    digest: str = Field(min_length=1)

    @model_validator(mode="after")
    def _is_one_of_ours(self) -> _Place:
        if self.end <= self.start or short_id(self.chunk_id, len(self.id)) != self.id:
            raise ValueError("no place that a turn has written")
        return self

    def with_text(self, text: str) -> Evidence:
        """The evidence that was cited."""
        return Evidence(**self.model_dump(exclude={"digest"}), score=0.0, text=text)


async def recall_evidence(
    request: Request, history: Sequence[BaseMessage], *, question_id: str, limit: int
) -> ToolMessage | None:
    """A message with the evidence, newest citations first, within the tokens; None where there is nothing to say.

    Its artifact has `hits`, as a search's has, and `stale`: short ids of citations whose passage is no longer what it
    was, or no longer there for this principal.
    """
    read = next((spec.read for spec in request.tools.values() if spec.read), None)
    places = list(islice(_cited(history), MAX_PASSAGES)) if read and limit > 0 else []
    if read is None or not places:
        return None
    texts = await _read_all(read, places, request)
    known = [(place, text) for place, text in zip(places, texts, strict=True) if text is not None]
    found = [place.with_text(text) for place, text in known if digest_of(text) == place.digest]
    stale = [place.id for place, text in known if digest_of(text) != place.digest]
    content, artifact = render_evidence(_fitting(found, limit))
    empty = (opening_tag(id_=id_, title="", heading="", page=None, note=STALE_NOTE) for id_ in stale)
    content = "\n".join(filter(None, [content, *(f"{tag}\n{CLOSING_TAG}" for tag in empty)]))
    if not content:
        return None
    name = f"earlier-{question_id}"
    return ToolMessage(
        content,
        tool_call_id=name,
        id=name,
        name=RECALLED,
        artifact={**artifact, "stale": stale},
        additional_kwargs={MARK: True},
    )


def is_recalled(message: BaseMessage) -> bool:
    """Whether the message is one of `recall_evidence`, and not the result of a call."""
    if not isinstance(message, ToolMessage):
        return False
    # a turn that an earlier version left waiting has no mark; a call's result never has the id of its call
    is_unmarked = message.name == RECALLED and message.id == message.tool_call_id
    return bool(message.additional_kwargs.get(MARK)) or is_unmarked


def without_recalled(turn: Iterable[BaseMessage]) -> list[BaseMessage]:
    """The turn's own messages."""
    return [message for message in turn if not is_recalled(message)]


def recalled_text(turn: Iterable[BaseMessage]) -> str:
    """What the turn was given of earlier evidence, as text for the model; empty where nothing was."""
    return "\n".join(message.text for message in turn if is_recalled(message))


def stale_warnings(turn: Iterable[BaseMessage]) -> list[str]:
    """What the outcome says about citations of earlier answers that don't hold any more."""
    return [
        f"citation {id_!r} of an earlier answer is stale: its passage changed or is not there for you any more"
        for message in turn
        if isinstance(message, ToolMessage) and is_recalled(message)
        for id_ in message.artifact["stale"]
    ]


def _cited(history: Sequence[BaseMessage]) -> Iterator[_Place]:
    """Places that the newest answers cite, each id once."""
    seen: set[str] = set()
    answers = 0
    for message in reversed(history):
        kept = message.response_metadata.get("citations") if isinstance(message, AIMessage) else None
        answers += isinstance(message, AIMessage)
        if answers > MAX_ANSWERS:
            return
        for value in kept[:MAX_PASSAGES] if isinstance(kept, list | tuple) else ():
            place = _place(value)
            if place and place.id not in seen:
                seen.add(place.id)
                yield place


def _place(kept: Any) -> _Place | None:
    try:
        return _Place.model_validate(kept)
    except ValidationError:
        return None


async def _read_all(read: ReadText, places: Sequence[_Place], request: Request) -> list[str | None]:
    """The text that stands at each place now: empty where there is none, None where nobody can tell, or need know."""
    spans: dict[str, tuple[int, int]] = {}
    for item in places:
        start, end = spans.get(item.document_id, (item.start, item.end))
        spans[item.document_id] = min(start, item.start), max(end, item.end)

    async def text_of(document_id: str) -> str | None:
        try:
            async with asyncio.timeout(READ_SECONDS):
                return await _read(read, document_id, spans[document_id], request)
        except Exception as error:  # a turn without it is worth more than none
            logger.warning("earlier evidence can't be read: %s: %s", type(error).__name__, error)
            return None

    texts = dict(zip(spans, await asyncio.gather(*map(text_of, spans)), strict=True))

    def part(item: _Place) -> str | None:
        text, first = texts[item.document_id], spans[item.document_id][0]
        return None if text is None else text[item.start - first : item.end - first]

    return [part(place) for place in places]


async def _read(read: ReadText, document_id: str, span: tuple[int, int], request: Request) -> str | None:
    try:
        return await read(document_id, *span, request.scope)
    except DocumentNotFoundError:
        own = Scope.of(request.principal)
    if request.scope == own:
        return ""
    try:
        await read(document_id, *span, own)
    except DocumentNotFoundError:
        return ""
    return None  # this request looks elsewhere; the citation holds


def _fitting(found: Sequence[Evidence], limit: int) -> list[Evidence]:
    kept: list[Evidence] = []
    for item in found:
        if estimate_tokens(render_evidence([*kept, item])[0]) <= limit:
            kept.append(item)
    return kept
