"""The values that travel from a file to an answer: document, chunk, hit.

All frozen. Offsets count characters (code points) of the document's extracted text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

SHORT_ID_LENGTHS = range(5, 8)
"""Characters of a short id; longer ones only where shorter ones collide."""
HEADING_SEPARATOR = " > "
"""Between the headings above a passage."""

_LETTERS = "abcdefghjkmnpqrstvwxyz"
_DIGITS = "23456789"
_SYMBOLS = _LETTERS + _DIGITS


@dataclass(frozen=True, slots=True)
class Document:
    """A source file or record that was ingested."""

    id: str
    tenant: str
    collection: str
    source: str
    """Path relative to the folder that holds the knowledge base, absolute outside it, or a name."""
    title: str
    source_type: str
    """Format without a dot: md, txt, html, pdf, csv, json, parquet, eml, docx, pptx, xlsx, rtf, odt, epub."""
    text: str
    """The extracted text that all offsets refer to."""
    content_hash: str
    """Changes when the file, its access groups or the way it is cut changes."""
    groups: tuple[str, ...] = ()
    """Groups that may read it; empty: the whole tenant."""
    metadata: Mapping[str, object] = field(default_factory=dict)
    chunk_count: int = 0


@dataclass(frozen=True, slots=True)
class Chunk:
    """A citable piece of a document: `document.text[start:end] == text`."""

    id: str
    document_id: str
    tenant: str
    collection: str
    groups: tuple[str, ...]
    source: str
    source_type: str
    title: str
    heading: str
    """Headings above the chunk, outermost first, joined by " > "; may be empty."""
    page: int | None
    """1-based page, where the format has pages."""
    position: int
    """0-based place among the document's chunks."""
    text: str
    start: int
    end: int

    @property
    def index_text(self) -> str:
        """What is searched: the text under its title and headings; a first heading that is the title counts once."""
        is_in_heading = self.heading == self.title or self.heading.startswith(self.title + HEADING_SEPARATOR)
        context = [part for part in ("" if is_in_heading else self.title, self.heading) if part]
        return "\n".join([HEADING_SEPARATOR.join(context), self.text]) if context else self.text


@dataclass(frozen=True, slots=True)
class LegScore:
    """Where one leg (bm25, dense), or the reranker (rerank), ranked a hit."""

    rank: int
    """1 is best."""
    score: float


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk found for one query."""

    id: str
    """Short id, stable for the chunk and unique in its result."""
    chunk: Chunk
    score: float
    legs: Mapping[str, LegScore] = field(default_factory=dict)


def short_id(chunk_id: str, length: int = SHORT_ID_LENGTHS.start) -> str:
    """Short, stable name of a chunk: a letter, a digit, then both.

    The second place is always a digit, so that no word and no number ("[Company]", "[1]") looks like one. A longer id
    begins with the shorter one.
    """
    number = int.from_bytes(hashlib.blake2b(chunk_id.encode(), digest_size=8).digest(), "big")
    out = []
    for place in range(length):
        alphabet = _LETTERS if place == 0 else _DIGITS if place == 1 else _SYMBOLS
        number, at = divmod(number, len(alphabet))
        out.append(alphabet[at])
    return "".join(out)


def assign_short_ids(chunk_ids: list[str], taken: Mapping[str, str] | None = None) -> dict[str, str]:
    """Chunk id -> short id, without collisions among them or with `taken` (short id -> chunk id)."""
    owner = dict(taken or {})
    assigned: dict[str, str] = {}
    for chunk_id in chunk_ids:
        for length in SHORT_ID_LENGTHS:
            name = short_id(chunk_id, length)
            if owner.setdefault(name, chunk_id) == chunk_id:
                break
        assigned[chunk_id] = name
    return assigned
