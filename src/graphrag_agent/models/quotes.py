"""Sentences chosen from evidence for a question, by the words they share. Nothing is rewritten."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass

from graphrag_agent.models.evidence_blocks import EvidenceBlock
from graphrag_agent.models.questions import QuestionPart
from graphrag_agent.models.sentences import Sentence, split_sentences
from graphrag_agent.models.words import find_question_words, find_words

MAX_QUOTES = 3
MAX_CONDITIONS = 2
MAX_LIST_ITEMS = 8
MIN_COVERAGE = 0.4
"""Share of a question's weight that the best sentence must carry, else the evidence does not answer it."""
NEXT_BEST = 0.75
"""Share of the best score that a further sentence must reach."""
CONTEXT_WEIGHT = 0.5
"""What a word counts that stands only in the title, a heading or the question above the sentence."""
FOCUS_WEIGHT = 2.0
OFF_FOCUS_FACTOR = 0.5
"""For a sentence with none of the words in focus, or with none but them: it speaks of something else."""
FRAGMENT_FACTOR = 0.7
"""For a sentence whose beginning was cut off."""
POINTER_FACTOR = 0.7
"""For a sentence that only sends the reader elsewhere."""
UNENDED_FACTOR = 0.8
"""For a line without a full stop: a caption, a page footer."""
EXPECTED_FACTOR = 1.15
"""For a sentence of the form that the question asks for: a number, a definition."""
RANK_STEP, RANK_STEPS = 0.02, 10
"""What each of the first places further down the search result costs."""

_POINTER = re.compile(r"(?:see|click|refer to|read|visit|см\.|смотрите|参见|详见|请参阅)(?!\w)", re.IGNORECASE)
_LINK = re.compile(r"\[[^\]]*\]\([^)]*\)\.?|https?://\S+")
_CONDITION = re.compile(
    r"(?:however|unless|except|the exception|exceptions?|but|otherwise|if|only|provided|this does not apply|"
    r"does not apply|однако|кроме|за исключением|исключени[ея]|если|но|иначе|в противном случае|это не относится)\b"
    r"|[^.!?]{0,60}(?:, however,|, однако,)|但|除非|例外|除外|否则|如果|若|不过|然而",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"(?<![\w-])\d+(?![\w-])|(?<![一二三四五六七八九十百千两])[一二三四五六七八九十百千两]+\s*+个?[天日年月周次小工]"
    r"|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|twelve|half)\b(?=.{0,20}\b(?:hour|day|week|month|year|time))",
    re.IGNORECASE,
)
_DEFINITION = re.compile(
    r".{0,80}\b(?:is|are|means|provides|lets)\b|.{0,60}(?:—|\bэто\b)|.{1,30}(?:是|指)", re.IGNORECASE
)
_EXPECTED = (
    (
        re.compile(
            r"\bhow (?:many|much|long|often|far|old)\b|\bwhen\b|\bсколько\b|\bкогда\b|多少|几|多久|多长|何时|什么时候",
            re.IGNORECASE,
        ),
        _NUMBER.search,
    ),
    (re.compile(r"what(?:'s| is| are)\b|что такое\b|什么是|(?<=.)是什么", re.IGNORECASE), _DEFINITION.match),
)
"""Forms of questions, and what tells that a sentence has the form of their answer."""


@dataclass(frozen=True, slots=True)
class Quote:
    """Words copied from a block of evidence; in prose and rows blanks and line breaks become one blank."""

    text: str
    id: str


@dataclass(frozen=True, slots=True)
class _Candidate:
    block: EvidenceBlock
    rank: int
    sentences: list[Sentence]
    place: int
    words: frozenset[str]
    context: frozenset[str]

    @property
    def sentence(self) -> Sentence:
        return self.sentences[self.place]


def select_quotes(part: QuestionPart, blocks: Sequence[EvidenceBlock]) -> list[Quote]:
    """The sentences that answer the part, best first, each with the condition that follows it; empty when none does."""
    ranked = _rank_candidates(part, blocks)
    enough = max(ranked[0][0] * NEXT_BEST, MIN_COVERAGE) if ranked else MIN_COVERAGE
    quotes: list[Quote] = []
    chosen = 0
    for score, found in ranked:
        if chosen == MAX_QUOTES or score < enough:
            break
        fresh = [text for text in _with_conditions(found) if not _is_quoted(text, quotes)]
        quotes += [Quote(text, found.block.id) for text in fresh]
        chosen += bool(fresh)
    return quotes


def _rank_candidates(part: QuestionPart, blocks: Sequence[EvidenceBlock]) -> list[tuple[float, _Candidate]]:
    wanted = find_question_words(part.query)
    focus = find_question_words(part.focus).keys() & wanted.keys()
    candidates = [found for rank, block in enumerate(blocks) for found in _find_candidates(block, rank, wanted)]
    weights = _weigh(wanted, focus, candidates)
    fits = next((fits for asks, fits in _EXPECTED if asks.search(part.query)), None)
    scored = [
        (_score(found, weights, focus) * (EXPECTED_FACTOR if fits and fits(found.sentence.text) else 1.0), found)
        for found in candidates
    ]
    return sorted(scored, key=lambda pair: -pair[0])


def _find_candidates(block: EvidenceBlock, rank: int, wanted: dict[str, str]) -> Iterator[_Candidate]:
    """The sentences that may be quoted: no headings or questions, nothing that only echoes the question."""
    above = find_words(f"{block.title}\n{block.heading}")
    section: frozenset[str] = frozenset()
    sentences = split_sentences(block.text)
    for place, sentence in enumerate(sentences):
        words = find_words(sentence.text)
        if sentence.kind == "heading" or sentence.is_question:
            section = words
        elif sentence.is_lead_in or not (words <= wanted.keys() or _LINK.fullmatch(sentence.text)):
            yield _Candidate(block, rank, sentences, place, words, above | section)


def _weigh(wanted: dict[str, str], focus: Set[str], candidates: list[_Candidate]) -> dict[str, float]:
    """Weight of each wanted word; they add up to 1. Rare words and those in focus weigh more."""
    seen = Counter(stem for found in candidates for stem in wanted if stem in found.words)
    weights = {
        stem: math.log(1 + (len(candidates) + 1) / (seen[stem] + 1)) * (FOCUS_WEIGHT if stem in focus else 1.0)
        for stem in wanted
    }
    total = sum(weights.values()) or 1.0
    return {stem: weight / total for stem, weight in weights.items()}


def _score(found: _Candidate, weights: dict[str, float], focus: Set[str]) -> float:
    own = sum(weight for stem, weight in weights.items() if stem in found.words)
    lent = sum(weight for stem, weight in weights.items() if stem in found.context - found.words)
    score = (own + CONTEXT_WEIGHT * lent) * (1 - RANK_STEP * min(found.rank, RANK_STEPS))
    about = found.words | found.context
    for words in (focus, weights.keys() - focus):
        if words and not words & about:
            score *= OFF_FOCUS_FACTOR
    if found.place == 0 and found.sentence.text[0].islower():
        score *= FRAGMENT_FACTOR
    if _POINTER.match(found.sentence.text):
        score *= POINTER_FACTOR
    if found.sentence.kind == "prose" and not found.sentence.is_ended:
        score *= UNENDED_FACTOR
    return score


def _with_conditions(found: _Candidate) -> list[str]:
    sentence, following = found.sentence, found.sentences[found.place + 1 :]
    if not sentence.is_lead_in:
        return [_without_soft_breaks(sentence), *_conditions(following)]
    items = list(itertools.takewhile(lambda item: item.kind in {"item", "row"}, following[:MAX_LIST_ITEMS]))
    end = items[-1].end if items else sentence.end
    return [found.block.text[sentence.start : end], *_conditions(following[len(items) :])]


def _conditions(following: list[Sentence]) -> list[str]:
    found: list[str] = []
    for sentence in following[:MAX_CONDITIONS]:
        if sentence.kind not in {"prose", "item"} or not _CONDITION.match(sentence.text):
            break
        found.append(_without_soft_breaks(sentence))
    return found


def _without_soft_breaks(sentence: Sentence) -> str:
    """The sentence on one line: one that was wrapped breaks nowhere in particular, and cells are padded with blanks."""
    return " ".join(sentence.text.split()) if sentence.kind in {"prose", "row"} else sentence.text


def _is_quoted(text: str, quotes: list[Quote]) -> bool:
    plain = " ".join(text.casefold().split())
    return any(plain in " ".join(quote.text.casefold().split()) for quote in quotes)
