"""An answer's citations as LangChain's annotations on its text: what chat clients other than ours read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from graphrag_agent.citations.values import Citation

Span = tuple[int, int, tuple[str, ...]]
"""Start and end of a cited stretch of the answer, marks included, and the ids that it cites."""
Content = str | list[str | dict[Any, Any]]


def annotated(text: str, citations: Sequence[Citation], spans: Iterable[Span]) -> Content:
    """The content of a message whose text is this: one block with an annotation for each id of each stretch.

    The cited text is no part of it, because a thread keeps none. Plain text where nothing is cited.
    """
    known = {citation.id: citation for citation in citations}
    found = [_annotation(known[id_], start, end) for start, end, ids in spans for id_ in ids if id_ in known]
    return [{"type": "text", "text": text, "annotations": found}] if found else text


def _annotation(citation: Citation, start: int, end: int) -> dict[str, Any]:
    told: dict[str, Any] = {"type": "citation", "start_index": start, "end_index": end}
    told |= {"title": citation.title} if citation.title else {}
    if citation.source.startswith(("https://", "http://")):
        told["url"] = citation.source
    return {**told, "extras": {"id": citation.id, "number": citation.number}}
