"""From the citations that a thread keeps to what stands there today, for the one who asks."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from langchain_core.messages import BaseMessage

from graphrag_agent.citations import Citation
from graphrag_agent.citations.values import digest_of
from graphrag_agent.errors import DocumentNotFoundError, GraphragError
from graphrag_agent.retrieval.scope import Scope
from graphrag_agent.tools.knowledge_search import Readable

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LocatedCitation:
    """A citation of an earlier answer, with its texts where they may be read and are what was cited."""

    citation: Citation
    is_stale: bool
    """Whether the passage was changed or deleted, or may no longer be read; why is nobody's business."""

    def as_dict(self) -> dict[str, Any]:
        """JSON-like form: the citation's fields and `stale`."""
        return {**asdict(self.citation), "stale": self.is_stale}


async def locate_citations(message: BaseMessage, knowledge: Readable | None, scope: Scope) -> list[LocatedCitation]:
    """What the answer cites, as it reads inside the scope today; without a knowledge base the places alone."""
    return [await _located(citation, knowledge, scope) for citation in kept_citations(message)]


def kept_citations(message: BaseMessage) -> Iterator[Citation]:
    """The citations that the thread keeps of an answer, without texts; what can't be read as one is passed over."""
    kept = message.response_metadata.get("citations")
    for place in kept if isinstance(kept, list | tuple) else ():
        known = place if isinstance(place, Mapping) else {}
        try:  # another version may have written it, or a client
            citation = Citation(**{name: known[name] for name in Citation.__dataclass_fields__ if name in known})
            is_a_place = 0 <= citation.start <= citation.end
        except TypeError:
            continue
        if is_a_place:
            yield citation


async def _located(citation: Citation, knowledge: Readable | None, scope: Scope) -> LocatedCitation:
    if knowledge is None or not citation.document_id:  # of a web page or a table the place alone is kept
        return LocatedCitation(citation, is_stale=False)
    try:
        text = await knowledge.aread(citation.document_id, start=citation.start, end=citation.end, scope=scope)
    except DocumentNotFoundError:
        text = ""
    except GraphragError as error:
        logger.warning("a cited passage can't be read: %s: %s", type(error).__name__, error)
        return LocatedCitation(citation, is_stale=False)
    # threads of earlier versions have no digest
    if not text or (citation.digest and digest_of(text) != citation.digest):
        return LocatedCitation(citation, is_stale=True)
    return LocatedCitation(citation.with_text(text), is_stale=False)
