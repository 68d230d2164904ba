"""Which of the ranked chunks are worth showing. Pure: a ranking in, a shorter ranking out."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from graphrag_agent.documents import Chunk
from graphrag_agent.retrieval.polarity_words import EXCEPTION_WORDS, NEGATION_WORDS

DUPLICATE_ABOVE = 0.9
"""Jaccard similarity of two texts' shingles; one changed word in sixty is just enough."""
SHINGLE_WORDS = 3
_LENGTH_RATIO = 0.8
"""Texts further apart in characters are not nearly the same; it spares most pairs the comparison of shingles."""

_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]+|(?:[^\w\s]|_)+")
"""One character is a word where words have no spaces between them; a run of signs is one everywhere."""
_SPACED_CHARACTERS = 12
"""Between two blanks, on average; more means a script without them, or code."""
_DIGITS = re.compile(r"\d+")
_NUMBER = re.compile(r"\d(?:[a-z\d.,:/%_-]*[a-z\d%])?")
_BEFORE_NUMBER = re.compile(r"[-+\u2212±<>≤≥=]*[a-z]*[-_/]?\Z")
_BEFORE_LENGTH = 8
"""Characters before a number that may belong to it: a sign, the letters of `e-1042` and `sku-99/a`."""
_NAME = re.compile(r"(?<![a-z\d.-])[a-z\d.-]*[_@][a-z\d._@-]*")
"""`err_conn_reset`, an e-mail address."""
_NEGATIONS = NEGATION_WORDS | EXCEPTION_WORDS
"""One such word among many turns a sentence around, so it decides as a number does."""
_NEGATIVE_ENDINGS = ("ない", "ません")


class Distinct(NamedTuple):
    """A ranking without its near-duplicates."""

    ranking: list[tuple[str, float]]
    duplicates: dict[str, str]
    """Dropped id -> the better-ranked id that says the same."""


def select_distinct(ranking: Sequence[tuple[str, float]], chunks: Mapping[str, Chunk], limit: int) -> Distinct:
    """The `limit` best (id, score) pairs that say something new each; what comes after them is not looked at.

    Two chunks say the same if their headings are equal and their texts too, but for blanks and case, or almost: same
    numbers, names in code and negations, about the same length, shingles more than 0.9 alike. So the rows of a price
    list stay apart.
    """
    kept: list[tuple[str, float]] = []
    duplicates: dict[str, str] = {}
    comparable: dict[tuple[str, ...], list[tuple[str, _Passage]]] = {}
    for name, score in ranking:
        if len(kept) == limit:
            break
        passage = _Passage(chunks[name].text)
        key = (_normalized(chunks[name].heading), *_DIGITS.findall(passage.text))
        others = comparable.setdefault(key, [])
        same = next((other for other, its in others if its.says_the_same_as(passage)), None)
        if same is None:
            others.append((name, passage))
            kept.append((name, score))
        else:
            duplicates[name] = same
    return Distinct(kept, duplicates)


def shingle_similarity(one: str, other: str) -> float:
    """Jaccard similarity of the texts' runs of three words, 0 to 1."""
    first, second = _Passage(one).shingles, _Passage(other).shingles
    shared = len(first & second)
    return shared / (len(first) + len(second) - shared)


class _Passage:
    """A text to compare; what a comparison needs is worked out when one needs it."""

    def __init__(self, text: str) -> None:
        self.text = _normalized(text)

    def says_the_same_as(self, other: _Passage) -> bool:
        if self.text == other.text:
            return True
        short, long = sorted((len(self.text), len(other.text)))
        if short < _LENGTH_RATIO * long:
            return False
        if self.is_spaced and len(self.between_blanks - other.between_blanks) > 2 + len(self.between_blanks) // 5:
            return False  # cheap, and never true of texts whose shingles are so much alike: a word is in three of them
        small, large = sorted((len(self.shingles), len(other.shingles)))
        if small <= DUPLICATE_ABOVE * large or self.facts != other.facts:  # too unlike in length to be alike
            return False
        shared = len(self.shingles & other.shingles)
        return shared > DUPLICATE_ABOVE * (small + large - shared)

    @cached_property
    def between_blanks(self) -> frozenset[str]:
        return frozenset(self.text.split())

    @cached_property
    def is_spaced(self) -> bool:
        return len(self.text) < _SPACED_CHARACTERS * (self.text.count(" ") + 1)

    @cached_property
    def words(self) -> list[str]:
        return _WORD.findall(self.text)

    @cached_property
    def shingles(self) -> frozenset[tuple[str, ...]]:
        runs = zip(*(self.words[start:] for start in range(SHINGLE_WORDS)), strict=False)
        return frozenset(runs) or frozenset({tuple(self.words)})

    @cached_property
    def facts(self) -> tuple[str | int, ...]:
        numbers = [_number(self.text, match) for match in _NUMBER.finditer(self.text)]
        negations = [word for word in self.words if word in _NEGATIONS]
        return (
            *numbers,
            *_NAME.findall(self.text),
            *negations,
            *(self.text.count(ending) for ending in _NEGATIVE_ENDINGS),
        )


def _number(text: str, match: re.Match[str]) -> str:
    before = _BEFORE_NUMBER.search(text[max(match.start() - _BEFORE_LENGTH, 0) : match.start()])
    return (before[0] if before else "") + match[0]


def _normalized(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
