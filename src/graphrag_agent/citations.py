"""From the ids in an answer's text to the places they point to.

A citation is an evidence id in square brackets, `[k3f2a]` or `[k3f2a, m7xw2]`. Ids that stand for nothing are taken out
of the text and reported; every other bracket is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Evidence:
    """A hit that was shown to the model in this turn."""

    id: str
    chunk_id: str
    document_id: str
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

    @classmethod
    def of(cls, evidence: Evidence) -> Citation:
        """The place that the evidence came from, with its text."""
        return cls(**{name: getattr(evidence, name) for name in cls.__dataclass_fields__})

    @property
    def place(self) -> dict[str, Any]:
        """Everything but the text: what a thread keeps (DESIGN 8: no tool payload in it)."""
        return {name: value for name, value in asdict(self).items() if name != "text"}

    def with_text(self, text: str) -> Citation:
        """The same citation with its text."""
        return replace(self, text=text)


@dataclass(frozen=True, slots=True)
class CitedText:
    """An answer with its ids resolved."""

    text: str
    citations: tuple[Citation, ...]
    """In the order of their first mention, each once."""
    unknown: tuple[str, ...]
    """Ids that were taken out because they stand for no evidence of this turn."""


_ID = r"[a-z][2-9][a-z2-9]{3,5}"
_BRACKET = re.compile(
    rf"(?P<space>[ \t]*)(?:\[|【)\s*(?P<ids>{_ID}(?:\s*[,;，、]\s*{_ID})*)\s*(?:\]|】)", re.IGNORECASE
)


def resolve_citations(text: str, evidence: Mapping[str, Evidence]) -> CitedText:
    """The text with only real ids left in it, and what they point to."""
    found: dict[str, Citation] = {}
    unknown: dict[str, None] = {}

    def rewrite(match: re.Match[str]) -> str:
        ids = [part.strip().lower() for part in re.split(r"[,;，、]", match["ids"])]
        known = [id_ for id_ in dict.fromkeys(ids) if id_ in evidence]
        unknown.update(dict.fromkeys(id_ for id_ in ids if id_ not in evidence))
        found.update({id_: Citation.of(evidence[id_]) for id_ in known if id_ not in found})
        return f"{match['space']}[{', '.join(known)}]" if known else ""

    return CitedText(_BRACKET.sub(rewrite, text), tuple(found.values()), tuple(unknown))
