"""Evidence in a tool message: written once as text for the model, pointed into by the artifact.

The text is data: each hit stands in a tag with its source, and no hit can close or open such a tag. The artifact holds
no text, only where it stands in the message, so nothing is stored twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from langchain_core.messages import BaseMessage, ToolMessage

from graphrag_agent.citations import Evidence
from graphrag_agent.documents import Hit, assign_short_ids
from graphrag_agent.retrieval.evidence_tags import CLOSING_TAG, opening_tag, without_tags

READS_ON = "reads_on"
"""In an artifact: its hits follow each other in a document, and the note says where to read on."""

_REQUIRED_FIELDS = {"id", "chunk_id", "document_id", "score", "start", "end", "at"}
_PLACE_FIELDS = (
    *("id", "chunk_id", "document_id", "title", "source", "page", "heading", "score", "start", "end"),
    *("merged", "left_out", "is_computed"),
)
_KINDS: dict[str, Any] = {
    **dict.fromkeys(("id", "chunk_id", "document_id", "title", "source", "heading"), str),
    **dict.fromkeys(("start", "end", "left_out"), int),
    **{"page": int | None, "score": int | float, "is_computed": bool},
}


def evidence_of(hits: Iterable[Hit], merged: Mapping[str, tuple[str, ...]] | None = None) -> list[Evidence]:
    """Hits as the model is to see them; `merged` names the other chunks in a hit's text, by the hit's chunk id."""
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
            merged=(merged or {}).get(hit.chunk.id, ()),
        )
        for hit in hits
    ]


def render_evidence(evidence: Sequence[Evidence], *, note: str = "") -> tuple[str, dict[str, Any]]:
    """The message text, and the artifact whose hits point into it."""
    text, hits = "", []
    for item in evidence:
        lacks = f"… {_sentences(item.left_out)} left out; read the document for more" if item.left_out else ""
        text += opening_tag(id_=item.id, title=item.title, heading=item.heading, page=item.page, note=lacks) + "\n"
        start = len(text)
        text += without_tags(item.text)
        hits.append({**_place(item), "at": [start, len(text)]})
        text += f"\n{CLOSING_TAG}\n"
    text += f"Note: {without_tags(note)}\n" if note else ""
    return text.rstrip("\n"), {"hits": hits}


def note_of(message: ToolMessage) -> str:
    """The note at the end of a message with evidence; empty where it has none."""
    return _note(message.text, hits_of(message))


def read_evidence(messages: Iterable[BaseMessage]) -> dict[str, Evidence]:
    """Short id -> evidence of every tool message among the messages.

    What was shown twice has the text of both: a chunk alone and among neighbours, a web page found by two searches.
    """
    found: dict[str, Evidence] = {}
    for message in messages:
        if isinstance(message, ToolMessage):
            for item in _read(message.text, hits_of(message)):
                found[item.id] = _united(found[item.id], item) if item.id in found else item
    return found


def shown_ids(messages: Iterable[BaseMessage]) -> dict[str, str]:
    """Short id -> chunk id of all evidence among the messages; cheaper than reading it."""
    tools = (message for message in messages if isinstance(message, ToolMessage))
    return {hit["id"]: hit["chunk_id"] for message in tools for hit in hits_of(message)}


def chunk_ids_of(message: ToolMessage) -> set[str]:
    """Every chunk that the message shows, merged neighbours too."""
    return {name for hit in hits_of(message) for name in (hit["chunk_id"], *hit.get("merged", ()))}


def hits_of(message: ToolMessage) -> Sequence[Mapping[str, Any]]:
    """The hits that the message's artifact names; empty for a message of another kind."""
    return _named_so(message.artifact.get("hits")) if isinstance(message.artifact, Mapping) else ()


def _named_so(hits: Any) -> Sequence[Mapping[str, Any]]:
    """Those with our fields: a user's tool may have hits of another shape in its artifact."""
    items = hits if isinstance(hits, list | tuple) else ()
    return [hit for hit in items if (type(hit) is dict or isinstance(hit, Mapping)) and hit.keys() >= _REQUIRED_FIELDS]


def are_hits(value: Any) -> bool:
    """Whether a tool's `hits` are evidence that can be read back, or nothing like it; a user's may only look so."""
    return all(map(_is_hit, _named_so(value)))


def _is_hit(item: Mapping[str, Any]) -> bool:
    merged, at = item.get("merged", ()), item["at"]
    lists = [value for value in (merged, at) if isinstance(value, list | tuple)]
    return (
        len(lists) == 2
        and all(isinstance(name, str) for name in merged)
        and [type(place) for place in at] == [int, int]
        and all(isinstance(item[name], kind) for name, kind in _KINDS.items() if name in item)
    )


def evidence_text(messages: Iterable[BaseMessage]) -> str:
    """All evidence of the messages as one text, for a prompt that shows no tool messages."""
    return render_evidence(list(read_evidence(messages).values()))[0]


def rename_in(results: Sequence[ToolMessage], turn: Iterable[BaseMessage]) -> list[ToolMessage]:
    """The results with short ids that are unique among them and the evidence that the turn has shown."""
    taken = shown_ids(turn)
    settled = []
    for result in results:
        if hits_of(result):
            content, artifact = rename_collisions(result.text, result.artifact, taken)
            if artifact is not result.artifact:
                result = result.model_copy(update={"content": content, "artifact": artifact})
            taken |= {hit["id"]: hit["chunk_id"] for hit in hits_of(result)}
        settled.append(result)
    return settled


def rename_collisions(
    content: str, artifact: Mapping[str, Any], taken: Mapping[str, str]
) -> tuple[str, Mapping[str, Any]]:
    """The same message with longer ids where one is taken (short id -> chunk id) by another chunk."""
    hits = artifact["hits"]
    if all(taken.get(hit["id"], hit["chunk_id"]) == hit["chunk_id"] for hit in hits):
        return content, artifact
    evidence = _read(content, hits)
    names = assign_short_ids([item.chunk_id for item in evidence], taken)
    renamed = [replace(item, id=names[item.chunk_id]) for item in evidence]
    note = _note(content, artifact["hits"])
    for item in evidence:  # a note may cite, as the answer of a nested turn does
        note = re.sub(rf"\b{re.escape(item.id)}\b", names[item.chunk_id], note)
    text, found = render_evidence(renamed, note=note)
    return text, {**artifact, **found}


def _note(content: str, hits: Sequence[Mapping[str, Any]]) -> str:
    behind = content[max((hit["at"][1] for hit in hits), default=0) :]  # a passage may have such a line too
    return behind.partition("Note: ")[2]


def _sentences(count: int) -> str:
    return "1 sentence" if count == 1 else f"{count} sentences"


def _united(first: Evidence, second: Evidence) -> Evidence:
    """Both texts as one where they overlap in their document or are of none; else the first."""
    if first.chunk_id == second.chunk_id and not first.document_id:  # found or computed twice, with another outcome
        text = first.text if second.text in first.text else f"{first.text}\n{second.text}"
        return replace(first, text=text, end=first.start + len(text))
    low, high = sorted((first, second), key=lambda item: (item.start, -item.end))
    both_exact = all(len(item.text) == item.end - item.start for item in (low, high))
    if first.chunk_id != second.chunk_id or not both_exact or high.start > low.end:
        return first
    overlap = min(low.end, high.end) - high.start
    if low.text[high.start - low.start :][:overlap] != high.text[:overlap]:
        return first
    widest = max(low.end, high.end)
    return replace(
        first,
        start=low.start,
        end=widest,
        text=low.text + high.text[overlap:],
        merged=tuple(dict.fromkeys((*first.merged, *second.merged))),
        left_out=max((item for item in (low, high) if item.end == widest), key=lambda item: item.start).left_out,
    )


def _place(item: Evidence) -> dict[str, Any]:
    place = {name: getattr(item, name) for name in _PLACE_FIELDS}
    place["merged"] = list(item.merged)
    return {name: value for name, value in place.items() if value or name in _REQUIRED_FIELDS}


def _read(text: str, hits: Sequence[Mapping[str, Any]]) -> list[Evidence]:
    defaults = {"page": None, "heading": "", "title": "", "source": ""}
    places = ({name: hit[name] for name in _PLACE_FIELDS if name in hit} for hit in hits)
    return [
        Evidence(**{**defaults, **place, "merged": tuple(place.get("merged", ()))}, text=_slice(text, hit))
        for place, hit in zip(places, hits, strict=True)
    ]


def _slice(text: str, hit: Mapping[str, Any]) -> str:
    start, end = hit["at"]
    return text[start:end]
