"""Sentences chosen from evidence for a question, by the words they share. Nothing is rewritten."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
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
FRAGMENT_FACTOR = 0.7
NUMBER_FACTOR = 1.15
RANK_STEP = 0.02

_CONDITION = re.compile(
    r"(?:however|unless|except|exceptions?|but|otherwise|if|only|provided|this does not apply|does not apply|"
    r"однако|кроме|за исключением|если|но|исключени[ея]|иначе|в противном случае|это не относится)\b"
    r"|但|除非|例外|除外|否则|如果|若|不过|然而",
    re.IGNORECASE,
)
_ASKS_NUMBER = re.compile(
    r"\bhow (?:many|much|long|often|far|old)\b|\bwhen\b|\bсколько\b|\bкогда\b|多少|几|多久|多长|何时|什么时候", re.I
)
_NUMBER = re.compile(r"\d|[一二三四五六七八九十百千两]\s*[天日年月周个次小]")


@dataclass(frozen=True, slots=True)
class Quote:
    """Words copied from a block of evidence."""

    text: str
    id: str


@dataclass(frozen=True, slots=True)
class _Candidate:
    block: int
    place: int
    words: frozenset[str]
    context: frozenset[str]


def select_quotes(part: QuestionPart, blocks: Sequence[EvidenceBlock]) -> list[Quote]:
    """The sentences that answer the part, best first, each with the condition that follows it; empty when none does."""
    wanted = find_question_words(part.query)
    split = [split_sentences(block.text) for block in blocks]
    candidates = [found for at, block in enumerate(blocks) for found in _candidates(at, block, split[at])]
    weights = _weigh(wanted, set(find_question_words(part.focus)), candidates)
    scored = sorted(
        (
            (_score(found, weights, split[found.block][found.place], part.query), -at)
            for at, found in enumerate(candidates)
        ),
        reverse=True,
    )
    if not scored or scored[0][0] < MIN_COVERAGE:
        return []
    quotes: list[Quote] = []
    chosen = 0
    for score, at in scored:
        if chosen == MAX_QUOTES or score < max(scored[0][0] * NEXT_BEST, MIN_COVERAGE):
            break
        found = candidates[-at]
        block, sentences = blocks[found.block], split[found.block]
        fresh = [text for text in _with_conditions(block.text, sentences, found.place) if not _is_quoted(text, quotes)]
        quotes += [Quote(text, block.id) for text in fresh]
        chosen += bool(fresh)
    return quotes


def _candidates(at: int, block: EvidenceBlock, sentences: list[Sentence]) -> list[_Candidate]:
    above = find_words(f"{block.title}\n{block.heading}")
    section: frozenset[str] = frozenset()
    found = []
    for place, sentence in enumerate(sentences):
        words = find_words(sentence.text)
        if sentence.kind == "heading" or sentence.is_question:
            section = words
        else:
            found.append(_Candidate(at, place, words, above | section))
    return found


def _weigh(wanted: dict[str, str], focus: set[str], candidates: list[_Candidate]) -> dict[str, float]:
    """Weight of each wanted word; they add up to 1. Rare words and those in focus weigh more."""
    seen = Counter(stem for found in candidates for stem in wanted if stem in found.words)
    weights = {
        stem: math.log(1 + (len(candidates) + 1) / (seen[stem] + 1)) * (FOCUS_WEIGHT if stem in focus else 1.0)
        for stem in wanted
    }
    total = sum(weights.values()) or 1.0
    return {stem: weight / total for stem, weight in weights.items()}


def _score(found: _Candidate, weights: dict[str, float], sentence: Sentence, query: str) -> float:
    own = sum(weight for stem, weight in weights.items() if stem in found.words)
    lent = sum(weight for stem, weight in weights.items() if stem in found.context - found.words)
    score = (own + CONTEXT_WEIGHT * lent) * (1 - RANK_STEP * found.block)
    if sentence.start == 0 and sentence.text[0].islower():
        score *= FRAGMENT_FACTOR
    if _ASKS_NUMBER.search(query) and _NUMBER.search(sentence.text):
        score *= NUMBER_FACTOR
    return score


def _with_conditions(text: str, sentences: list[Sentence], place: int) -> list[str]:
    sentence = sentences[place]
    following = sentences[place + 1 :]
    if sentence.is_lead_in:
        items = 0
        while items < min(len(following), MAX_LIST_ITEMS) and following[items].kind in {"item", "row"}:
            items += 1
        end = following[items - 1].end if items else sentence.end
        return [text[sentence.start : end], *_conditions(following[items:])]
    return [sentence.text, *_conditions(following)]


def _conditions(following: list[Sentence]) -> list[str]:
    found: list[str] = []
    for sentence in following[:MAX_CONDITIONS]:
        if sentence.kind not in {"prose", "item"} or not _CONDITION.match(sentence.text):
            break
        found.append(sentence.text)
    return found


def _is_quoted(text: str, quotes: list[Quote]) -> bool:
    plain = " ".join(text.casefold().split())
    return any(plain in " ".join(quote.text.casefold().split()) for quote in quotes)
