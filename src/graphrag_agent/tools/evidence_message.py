"""Evidence in a tool message: written once as text for the model, pointed into by the artifact.

The text is data: each hit stands in a tag with its source, and no hit can close or open such a tag. The artifact holds
no text, only where it stands in the message, so nothing is stored twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from langchain_core.messages import BaseMessage, ToolMessage

from graphrag_agent.citations import Evidence
from graphrag_agent.documents import Hit, assign_short_ids
from graphrag_agent.retrieval.evidence_tags import CLOSING_TAG, opening_tag, without_tags

_REQUIRED_FIELDS = {"id", "chunk_id", "document_id", "score", "start", "end", "at"}
_PLACE_FIELDS = ("id", "chunk_id", "document_id", "title", "source", "page", "heading", "score", "start", "end")


def evidence_of(hits: Iterable[Hit]) -> list[Evidence]:
    """Hits as the model is to see them."""
    return [
        Evidence(
            id=hit.id,
            chunk_id=hit.chunk.id,
            document_id=hit.chunk.document_id,
            title=hit.chunk.title,
            source=hit.chunk.source,
            page=hit.chunk.page,
            heading=hit.chunk.heading,
            score=round(hit.score, 4),
            start=hit.chunk.start,
            end=hit.chunk.end,
            text=hit.chunk.text,
        )
        for hit in hits
    ]


def render_evidence(evidence: Sequence[Evidence], *, note: str = "") -> tuple[str, dict[str, Any]]:
    """The message text, and the artifact whose hits point into it."""
    text, hits = "", []
    for item in evidence:
        text += opening_tag(id_=item.id, title=item.title, heading=item.heading, page=item.page) + "\n"
        start = len(text)
        text += without_tags(item.text)
        hits.append({**_place(item), "at": [start, len(text)]})
        text += f"\n{CLOSING_TAG}\n"
    text += f"Note: {note}\n" if note else ""
    return text.rstrip("\n"), {"hits": hits}


def read_evidence(messages: Iterable[BaseMessage]) -> dict[str, Evidence]:
    """Short id -> evidence of every tool message among the messages."""
    found: dict[str, Evidence] = {}
    for message in messages:
        if isinstance(message, ToolMessage):
            for item in _read(message.text, hits_of(message)):
                found.setdefault(item.id, item)
    return found


def hits_of(message: ToolMessage) -> Sequence[Mapping[str, Any]]:
    """The hits that the message's artifact names; empty for a message of another kind."""
    hits = message.artifact.get("hits") if isinstance(message.artifact, Mapping) else None
    if not isinstance(hits, list | tuple):
        return ()
    # a user's tool may have hits of another shape in its artifact
    return [hit for hit in hits if isinstance(hit, Mapping) and hit.keys() >= _REQUIRED_FIELDS]


def evidence_text(messages: Iterable[BaseMessage]) -> str:
    """All evidence of the messages as one text, for a prompt that shows no tool messages."""
    return render_evidence(list(read_evidence(messages).values()))[0]


def rename_collisions(
    content: str, artifact: Mapping[str, Any], taken: Mapping[str, str]
) -> tuple[str, Mapping[str, Any]]:
    """The same message with longer ids where one is taken (short id -> chunk id) by another chunk."""
    evidence = _read(content, artifact["hits"])
    if all(taken.get(item.id, item.chunk_id) == item.chunk_id for item in evidence):
        return content, artifact
    names = assign_short_ids([item.chunk_id for item in evidence], taken)
    note = content.rpartition("\nNote: ")[2] if "\nNote: " in content else ""
    return render_evidence([replace(item, id=names[item.chunk_id]) for item in evidence], note=note)


def _place(item: Evidence) -> dict[str, Any]:
    return {name: value for name in _PLACE_FIELDS if (value := getattr(item, name)) not in (None, "")}


def _read(text: str, hits: Sequence[Mapping[str, Any]]) -> list[Evidence]:
    defaults = {"page": None, "heading": "", "title": "", "source": ""}
    return [
        Evidence(**{**defaults, **{name: hit[name] for name in _PLACE_FIELDS if name in hit}}, text=_slice(text, hit))
        for hit in hits
    ]


def _slice(text: str, hit: Mapping[str, Any]) -> str:
    start, end = hit["at"]
    return text[start:end]
