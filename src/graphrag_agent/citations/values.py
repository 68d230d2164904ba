"""What a turn's model was shown (`Evidence`), and what its answer points to (`Citation`, `Quote`)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

Support = Literal["supported", "weak", "unsupported"]
"""What the check of a cited sentence came to. It compares words and facts; it proves nothing."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """A hit, or what another tool found or worked out, that was shown to the model in this turn."""

    id: str
    chunk_id: str
    document_id: str
    """Empty for what is in no document of the knowledge base, a web page for example: `source` says where it is."""
    title: str
    source: str
    page: int | None
    heading: str
    score: float
    start: int
    """Where the text begins in the document's extracted text, in characters."""
    end: int
    text: str
    merged: tuple[str, ...] = ()
    """Ids of neighbouring chunks that the text holds besides the chunk itself."""
    left_out: int = 0
    """Sentences at the end of the passage that are not in the text, for want of tokens."""
    is_computed: bool = False
    """Whether a tool worked it out: its figures stand without the words that a sentence says of them."""

    @property
    def origin(self) -> str:
        """What passages of one document, page or result have in common."""
        return self.document_id or self.source or self.chunk_id


@dataclass(frozen=True, slots=True)
class Quote:
    """Words of a source that a cited sentence rests on; empty text where only the place is known."""

    start: int
    """In characters of the document's extracted text."""
    end: int
    text: str = ""


@dataclass(frozen=True, slots=True)
class Citation:
    """Evidence that an answer points to; `text` is the cited chunk, empty where only the place is known."""

    id: str
    document_id: str
    title: str
    source: str
    page: int | None
    heading: str
    start: int
    end: int
    text: str = ""
    number: int = 0
    """Of its origin among those that the answer cites, from 1; 0 where none was given."""
    support: Support | Literal[""] = ""
    """The worst that the check found of the sentences that cite it; empty where none was checked."""
    quotes: tuple[Quote, ...] = ()
    """The sentences of the text that the cited ones were compared with, in the document's order."""
    digest: str = ""
    """Of the text, so that a later reader can tell whether the place still says the same."""
    chunk_id: str = ""
    """What the id is short for."""

    def __post_init__(self) -> None:
        # JSON and a thread bring them as dicts
        told = tuple(Quote(**item) if isinstance(item, Mapping) else item for item in self.quotes)
        object.__setattr__(self, "quotes", told)

    @property
    def origin(self) -> str:
        """What passages of one document, page or result have in common."""
        return self.document_id or self.source or self.chunk_id or self.id

    @classmethod
    def of(cls, evidence: Evidence, *, number: int = 0) -> Citation:
        """The place that the evidence came from, with its text."""
        names = ("id", "document_id", "title", "source", "page", "heading", "start", "end", "text")
        told = {name: getattr(evidence, name) for name in names}
        return cls(**told, number=number, digest=digest_of(evidence.text), chunk_id=evidence.chunk_id)

    @property
    def place(self) -> dict[str, Any]:
        """Everything but the texts: what a thread keeps, which holds no tool result."""
        told = self.as_dict()
        del told["text"]
        return {**told, "quotes": [{"start": quote.start, "end": quote.end} for quote in self.quotes]}

    def as_dict(self) -> dict[str, Any]:
        """Everything, JSON-like; `Citation(**...)` reads it."""
        # not dataclasses.asdict, which copies each text: a tenth of the CPU
        told = {name: getattr(self, name) for name in self.__dataclass_fields__}
        quotes = [{"start": quote.start, "end": quote.end, "text": quote.text} for quote in self.quotes]
        return {**told, "quotes": quotes}

    def with_text(self, text: str) -> Citation:
        """The same citation with its text, and the texts of its quotes."""
        quotes = tuple(
            replace(quote, text=text[max(quote.start - self.start, 0) : max(quote.end - self.start, 0)])
            for quote in self.quotes
        )
        return replace(self, text=text, quotes=quotes)


def digest_of(text: str) -> str:
    """Twelve characters that change with the text; `‹` for `<`, as a model is shown it, makes no difference."""
    return hashlib.blake2b(text.replace("‹", "<").encode(errors="replace"), digest_size=6).hexdigest()
