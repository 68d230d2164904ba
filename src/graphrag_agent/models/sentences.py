"""Text cut into sentences without changing a character of them.

Every sentence is `text[start:end]`. Line markers ("- ", "1. ", "# ", "> ") stay outside; headings and table rows are
one sentence each; a lead-in ("You may:") reaches over the list below it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Kind = Literal["prose", "item", "row", "heading"]

WRAPPED_LINE_CHARACTERS = 50
"""A line at least this wide that does not end a sentence goes on in the next line."""

_LINE = re.compile(r"[^\n]*\n?")
_MARKER = re.compile(r"\s*(?:(?:#{1,6}|[-*+•>–]|\d{1,3}[.)])[ \t]+)*")
_TABLE_RULE = re.compile(r"[\s|:+=-]*")
_ROW = re.compile(r"[^:;：；]{1,60}+[:：][^;；]++(?:[;；]\s*+[^:;：；]{1,60}+[:：][^;；]*+)++")
"""Nothing in it is tried twice: a long row that is none after all would take for ever."""
_END = re.compile(r"(?<![.!?…])[.!?…]++[\"'”’»)\]*_]*+(?=\s|$)|[。！？｡]+[”’」』）\"]*")
"""Only the first of a row of stops begins a search: else each would look to the end of the row."""
_NEXT = re.compile(r"\s*(\S?)")
_BOLD_LINE = re.compile(r"(\*\*|__)[^*_]*[^*_.!?。:：]\1")
_MAX_WORD_CHARACTERS = 40
"""Characters before a point that tell whether an abbreviation or a lone number stands there."""
_OPEN_ENDS = ("，", "、", ",", "；", ";", "(", "（")

_BEFORE_NAMES = frozenset(
    re.findall(r"\S+", "mr mrs ms dr prof st e.g i.e vs cf т т.е т.к т.н т.ч им ул г-н г-жа акад проф е")
)
"""Abbreviations after which a sentence never ends."""

_BEFORE_NUMBERS = frozenset(re.findall(r"\S+", "no nos fig figs art sec ch vol pp p п пп ст стр рис табл гл см"))
"""Abbreviations after which a sentence goes on when a number or a small letter follows."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence and where it stands."""

    text: str
    start: int
    kind: Kind

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def is_question(self) -> bool:
        return self.text.rstrip("*_\"'”’) ").endswith(("?", "？"))

    @property
    def is_ended(self) -> bool:
        return self.text.rstrip("*_\"'”’»)]」』 ").endswith((".", "!", "?", "…", "。", "！", "？", ":", "："))

    @property
    def is_lead_in(self) -> bool:
        return self.text.rstrip("*_ ").endswith((":", "："))


def split_sentences(text: str) -> list[Sentence]:
    """The sentences of the text, in order."""
    found = []
    for start, end, kind in _blocks(text):
        for first, last in _cut(text, start, end) if kind in {"prose", "item"} else [(start, end)]:
            stripped = text[first:last].strip()
            if any(character.isalnum() for character in stripped):
                found.append(Sentence(stripped, text.index(stripped, first), kind))
    return found


def _blocks(text: str) -> Iterator[tuple[int, int, Kind]]:
    """Stretches that no sentence crosses: a heading, a row, an item, a paragraph."""
    start = end = last = 0
    kind: Kind | None = None
    for match in _LINE.finditer(text):
        marker = _MARKER.match(match[0])
        body = marker.end() if marker else 0
        line_kind = _classify_line(match[0], body)
        if kind in {"prose", "item"} and line_kind == "prose" and _is_wrapped(text[last:end], match[0]):
            last, end = match.span()
            continue
        if kind:
            yield start, end, kind
        start = last = match.start() + body
        end, kind = match.end(), line_kind
    if kind:
        yield start, end, kind


def _classify_line(line: str, body: int) -> Kind | None:
    text = line[body:].strip()
    if _TABLE_RULE.fullmatch(text):
        return None
    if "#" in line[:body] or _BOLD_LINE.fullmatch(text):
        return "heading"
    if text.startswith("|") or _ROW.fullmatch(text):
        return "row"
    return "item" if line[:body].strip(" \t>") else "prose"


def _is_wrapped(before: str, line: str) -> bool:
    last = before.strip()
    ends = _END.search(last[-4:])
    if ends and last.endswith(ends[0]):
        return True  # a new sentence of the same paragraph
    if last.endswith((":", "：")):
        return False
    width = sum(2 if character >= "\u2e80" else 1 for character in last)
    return width >= WRAPPED_LINE_CHARACTERS or last.endswith(_OPEN_ENDS) or line.lstrip()[:1].islower()


def _cut(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    for match in _END.finditer(text, start, end):
        if match.end() < end and not _ends_sentence(text, start, match, end):
            continue
        yield start, match.end()
        start = match.end()
    if start < end:
        yield start, end


def _ends_sentence(text: str, start: int, mark: re.Match[str], end: int) -> bool:
    """Looks only around the mark: a copy of what is before and behind it would cost the square of the text."""
    if not mark[0].startswith("."):
        return True
    behind = _NEXT.match(text, mark.end(), end)
    following = behind[1] if behind else ""
    if following.islower():
        return False
    before = text[max(start, mark.start() - _MAX_WORD_CHARACTERS) : mark.start()]
    word = before.rsplit(None, 1)[-1].lstrip("(«\"'[") if before.split() else ""
    is_initial = len(word) == 1 and word.isupper()
    is_number = word.isdecimal() and mark.start() - start <= _MAX_WORD_CHARACTERS and not before[: -len(word)].strip()
    if word.casefold() in _BEFORE_NAMES or is_initial or is_number:
        return False
    return not (word.casefold() in _BEFORE_NUMBERS and (following.isdecimal() or following == "№"))
