"""What every parser returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SectionKind = Literal["heading", "prose", "table", "code"]


@dataclass(frozen=True, slots=True)
class Section:
    """A stretch of a document's text that may be cut into chunks; what no section covers is never a chunk."""

    start: int
    end: int
    heading: str = ""
    """Headings above and at the section, outermost first, joined by " > "."""
    page: int | None = None
    """1-based, where the format has pages."""
    kind: SectionKind = "prose"
    """heading: a heading's own lines, which belong to the chunk below; table: one row a line."""


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """A file's extracted text and its sections, in order and apart from each other."""

    text: str
    title: str
    source_type: str
    sections: tuple[Section, ...]

    @property
    def is_blank(self) -> bool:
        """No section holds anything to read."""
        return not any(self.text[section.start : section.end].strip() for section in self.sections)
