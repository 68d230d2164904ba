"""What every parser returns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

PART_SEPARATOR = "\n\n"
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


class Part(NamedTuple):
    """A page, a slide or a piece of a message: its text, and its sections with offsets in it."""

    text: str
    sections: tuple[Section, ...]


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


def join_parts(parts: Iterable[Part]) -> Part:
    """One text, a blank line between the parts, and their sections where they are in it."""
    texts: list[str] = []
    sections: list[Section] = []
    offset = 0
    for part in parts:
        texts.append(part.text)
        sections += [replace(one, start=one.start + offset, end=one.end + offset) for one in part.sections]
        offset += len(part.text) + len(PART_SEPARATOR)
    return Part(PART_SEPARATOR.join(texts), tuple(sections))
