"""The sentences that say most of a text, or of what is asked about it. They are chosen, never rewritten."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from graphrag_agent.models.sentences import Sentence, split_sentences
from graphrag_agent.models.words import find_question_words, find_words

MIN_WORDS, MAX_WORDS = 4, 60
"""Content words of a sentence that is worth quoting where nothing is asked; longer ones are lists without stops."""

LEAD_BONUS = 0.25
"""For the first sentence of a part: a text says early what it is about. Halved for each one further down."""

FOCUS_SHARE = 0.25
"""Of the focus' weight that a sentence must carry."""


@dataclass(frozen=True, slots=True)
class KeySentence:
    """A sentence, and in which of the texts it stands."""

    text_number: int
    sentence: Sentence


@dataclass(frozen=True, slots=True)
class _Candidate:
    found: KeySentence
    words: frozenset[str]
    place: int


def select_key_sentences(texts: Sequence[str], count: int, *, focus: str = "") -> list[KeySentence]:
    """At most `count` sentences of the texts, in their order.

    Without a focus those whose words are the most frequent ones, each word counting less once it was said (SumBasic,
    over the root of the length, so that no sentence wins by being short); with a focus those that share its rarer
    words, none where the texts don't have them.
    """
    least = 1 if focus else MIN_WORDS
    candidates = [item for number, text in enumerate(texts) for item in _candidates(number, text, least)]
    spread = Counter(word for item in candidates for word in item.words)
    if focus:
        scores = _focus_scores(candidates, spread, focus)
        chosen = sorted((at for at in scores), key=lambda at: (-scores[at], at))[:count]
    else:
        chosen = _most_telling(candidates, spread, count)
    return [candidates[at].found for at in sorted(chosen)]


def _candidates(number: int, text: str, least: int) -> list[_Candidate]:
    sentences = [item for item in split_sentences(text) if item.kind != "heading"]
    found = [
        _Candidate(KeySentence(number, sentence), find_words(sentence.text), place)
        for place, sentence in enumerate(sentences)
        if not (sentence.is_question or sentence.is_lead_in)
    ]
    return [item for item in found if least <= len(item.words) <= MAX_WORDS] or found


def _focus_scores(candidates: Sequence[_Candidate], spread: Counter[str], focus: str) -> dict[int, float]:
    weights = {word: math.log(1 + len(candidates) / (1 + spread[word])) for word in find_question_words(focus)}
    total = sum(weights.values()) or 1.0
    shares = {at: sum(weights.get(word, 0.0) for word in item.words) / total for at, item in enumerate(candidates)}
    return {at: share for at, share in shares.items() if share >= FOCUS_SHARE}


def _most_telling(candidates: Sequence[_Candidate], spread: Counter[str], count: int) -> list[int]:
    total = sum(spread.values()) or 1
    weight = {word: number / total for word, number in spread.items()}
    left, chosen = set(range(len(candidates))), list[int]()
    while left and len(chosen) < count:
        best = max(left, key=lambda at: (_telling(candidates[at], weight), -at))
        left.remove(best)
        chosen.append(best)
        for word in candidates[best].words:
            weight[word] **= 2
    return chosen


def _telling(item: _Candidate, weight: dict[str, float]) -> float:
    shared = sum(weight[word] for word in item.words)
    return shared / math.sqrt(len(item.words) or 1) * (1 + LEAD_BONUS * 0.5**item.place)
