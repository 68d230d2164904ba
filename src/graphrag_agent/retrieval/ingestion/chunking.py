"""Sections cut into passages: exact pieces of the text, never across a page or a change of heading."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from graphrag_agent.documents import HEADING_SEPARATOR
from graphrag_agent.retrieval.ingestion.parsing.parsed_document import ParsedDocument, Section, SectionKind
from graphrag_agent.retrieval.ingestion.splitting import split_recursively
from graphrag_agent.token_estimate import UNITS_PER_TOKEN, count_token_units

MAX_PASSAGE_TOKENS = 300
"""Estimated, before heading lines and small neighbours join: with both it fits the 512 tokens of small embedders."""

SMALL_PASSAGE_TOKENS = 40
"""A piece below this says too little alone, so it may join a full neighbour of the same heading and page."""

MAX_HEADING_TOKENS = 160
"""Of the headings that open a passage, on top of its maximum: the longest line that is one, in Chinese."""

_MAX_HEADING_UNITS = 80 * UNITS_PER_TOKEN
"""Headings without text below them pile up to this before they become a passage of their own."""
_SMALL_UNITS = SMALL_PASSAGE_TOKENS * UNITS_PER_TOKEN
_MAX_UNITS = MAX_PASSAGE_TOKENS * UNITS_PER_TOKEN
_MAX_OPENED_UNITS = _MAX_UNITS + MAX_HEADING_TOKENS * UNITS_PER_TOKEN
_MAX_CHARS = _MAX_UNITS // count_token_units("x")
_MAX_COMBINED = 20
"""Characters that one visible character may be made of before it is cut after all."""
_MAX_COLUMNS_CHARS = 200
_MAX_GAP_CHARS = 40
"""Blanks between two pieces of a passage, some twenty lines; more would fill it with nothing."""
_TABLE_HEAD = re.compile(r"([^\n]*\|[^\n]*)\n[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*(?:\r?\n|\Z)")
"""The first two lines of a table in Markdown."""
_JOINERS = "\u200d\ufe0e\ufe0f\u20e3"

_LINE = r"(?:\r\n|\r(?!\n)|\n)"
"""One line's end; the halves of CRLF are not two."""
_PARAGRAPH = rf"{_LINE}[ \t]*{_LINE}\s*"
_LIST_ITEM = (
    # with a blank after it where the sign may as well begin a word or a number
    _LINE + r"(?=[ \t]*(?:[-*+–][ \t]|[•·]|\d{1,3}(?:[.)][ \t]|、)|[（(]?[一二三四五六七八九十]{1,3}[）)、]))"
)
_ABBREVIATIONS = (
    *(
        "Mr",
        "Mrs",
        "Ms",
        "Dr",
        "Prof",
        "St",
        "No",
        "Nos",
        "Nr",
        "Art",
        "Fig",
        "Sec",
        "Ch",
        "Vol",
        "Eq",
        "p",
        "pp",
        "vs",
    ),
    *("approx", "cf", "e.g", "i.e", "z. B", "z.B", "Abs", "ca"),
    *("п", "пп", "ст", "стр", "с", "гл", "рис", "табл", "им", "ул", "д", "г", "т", "тов", "проф", "др"),
)
"""What comes after them goes on with the sentence, even with a capital or a number."""
_NO_END = "".join(rf"(?<!\b{word.replace('.', '[.]')}[.])" for word in _ABBREVIATIONS) + r"(?<!\b[A-ZА-ЯЁ][.])"
_SENTENCE = (
    # only the first of a row of stops begins a search: else each would look to the end of the row
    r"(?:(?<![。！？｡])[。！？｡]++[”’」』）】]*+(?![とっはがをのも、，])\s*"
    rf"|(?<=[.!?…؟۔।]){_NO_END}[\"'”’»)\]]*\s+(?=[^\sa-zа-яё]))"
)
_CLAUSE = r"(?:；\s*|[;:]\s+)"
_COMMA = r"(?:[，、]\s*|,\s+)"
_BLANK = r"\s+"

_SEPARATORS: dict[SectionKind, list[str]] = {
    # sentences before lines: hard-wrapped prose must not be cut in mid-condition
    "prose": [_PARAGRAPH, _LIST_ITEM, _SENTENCE, _LINE, _CLAUSE, _COMMA, _BLANK],
    # a row is cut only when it alone is too long, and then between cells
    "table": [_LINE, r"(?:[;|]\s+)", _SENTENCE, _COMMA, _BLANK],
    "code": [_PARAGRAPH, _LINE, _BLANK],
    "heading": [_LINE, _BLANK],
}


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a document: `parsed.text[start:end] == text`, never blank at its ends."""

    text: str
    start: int
    end: int
    heading: str = ""
    page: int | None = None


class _Span(NamedTuple):
    start: int
    end: int
    heading: str
    page: int | None


def split_document(parsed: ParsedDocument) -> list[Passage]:
    """The sections' text as passages, in order, apart from each other, with nothing but blanks left out.

    A heading's lines go with the passage below them.
    """
    spans = _joined_small(parsed.text, _with_headings(parsed.text, parsed.sections))
    return [Passage(parsed.text[span.start : span.end], *span) for span in spans]


def _with_headings(text: str, sections: Iterable[Section]) -> Iterator[_Span]:
    """Pieces of the sections; a heading is held back and opens the next piece."""
    waiting: _Span | None = None
    for section in sections:
        limit = _MAX_HEADING_UNITS if section.kind == "heading" else _MAX_OPENED_UNITS
        for piece in _pieces(text, section):
            if waiting and _can_join(text, waiting, piece, limit):
                piece = piece._replace(start=waiting.start)
            elif waiting:
                yield waiting
            waiting = piece if section.kind == "heading" else None
            if not waiting:
                yield piece
    if waiting:
        yield waiting


def _joined_small(text: str, spans: Iterable[_Span]) -> Iterator[_Span]:
    """Neighbours of the same heading and page in one span, as far as they fit."""
    last: _Span | None = None
    for span in spans:
        if last is None:
            last = span
        elif last.heading == span.heading and _can_join(text, last, span, _joined_limit(text, last, span)):
            last = last._replace(end=span.end)
        else:
            yield last
            last = span
    if last:
        yield last


def _joined_limit(text: str, *spans: _Span) -> int:
    smaller = min(count_token_units(text[span.start : span.end]) for span in spans)
    return _MAX_UNITS + (_SMALL_UNITS if smaller < _SMALL_UNITS else 0)


def _can_join(text: str, first: _Span, second: _Span, max_units: int) -> bool:
    """Whether nothing but some blanks lies between them, on one page, and both fit together."""
    if first.page != second.page or second.start - first.end > _MAX_GAP_CHARS or text[first.end : second.start].strip():
        return False
    return count_token_units(text[first.start : second.end]) <= max_units


def _pieces(text: str, section: Section) -> Iterator[_Span]:
    """The section in pieces of at most the maximum, trimmed, blank ones left out."""
    start = section.start
    heading = section.heading
    for piece in _cut(text[section.start : section.end], section.kind):
        end = start + len(piece)
        trimmed = piece.strip()
        if trimmed:
            first = start + len(piece) - len(piece.lstrip())
            yield _Span(first, first + len(trimmed), heading, section.page)
            heading = _below_columns(section, trimmed) if heading is section.heading else heading
        start = end


def _below_columns(section: Section, opening: str) -> str:
    """The heading for the later rows of a table: theirs, and the columns that its first lines name."""
    columns = _TABLE_HEAD.match(opening) if section.kind == "table" else None
    if not columns:
        return section.heading
    names = " | ".join(filter(None, (cell.strip() for cell in columns[1].strip().strip("|").split("|"))))
    return HEADING_SEPARATOR.join(filter(None, [section.heading, names[:_MAX_COLUMNS_CHARS]]))


def _cut(text: str, kind: SectionKind) -> Iterator[str]:
    """Pieces that make up the text again, cut at the best separators of its kind."""
    if _fits(text):
        yield text
        return
    for piece in split_recursively(text, _SEPARATORS[kind], count_token_units, _MAX_UNITS):
        yield from _cut_unbroken(piece)


def _cut_unbroken(piece: str) -> Iterator[str]:
    """A piece without separators (base64, unmarked CJK) by length, not inside a combined character."""
    start = 0
    while len(piece) - start > _MAX_CHARS or not _fits(piece[start:]):
        window = piece[start : start + _MAX_CHARS + 1]
        end = bisect_right(range(1, len(window)), _MAX_UNITS, key=lambda size: count_token_units(window[:size]))
        whole = next((at for at in range(end, max(end - _MAX_COMBINED, 1), -1) if not _is_joined(window, at)), end)
        yield piece[start : start + whole]
        start += whole
    yield piece[start:]


def _is_joined(text: str, at: int) -> bool:
    """Whether the character belongs to the one before it: accents, emoji parts, the second half of CRLF."""
    here, before = text[at], text[at - 1]
    return bool(
        unicodedata.combining(here)
        or here in _JOINERS
        or "\U0001f3fb" <= here <= "\U0001f3ff"
        or before == "\u200d"
        or before + here == "\r\n"
    )


def _fits(text: str) -> bool:
    return count_token_units(text) <= _MAX_UNITS
