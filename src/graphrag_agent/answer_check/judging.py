"""Holds one claim against the passages it cites. A check of words and facts, no proof."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from graphrag_agent.answer_check.facts import Doubt, doubts_about, left_out_exceptions
from graphrag_agent.answer_check.passages import Passage, PassageSentence, Text, best_sentences, find_terms
from graphrag_agent.citations import Support

SUPPORTED_FROM, WEAK_FROM = 0.6, 0.25
"""Share of the claim's words that its source must have."""

_OPENING, _CLOSING = " *_\"'“‘«", " .!?:;,。*_\"'”’»"
"""Signs around a sentence that are no part of what it says; a point before a number is one."""
_GOES_ON = re.compile(r"[.,]*\w|\s*%|(?<=\d)\s+\w|\s+(?:hundred|thousand|[mb]illion|тысяч|миллион|миллиард)")
"""The rest of a word or of a number."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of one claim."""

    support: Support
    reasons: tuple[str, ...]
    sentences: tuple[PassageSentence, ...]
    """What it was compared with, best first."""


def judge(claim_text: str, passages: Sequence[Passage]) -> Verdict:
    """Whether the passages say what the claim says."""
    claim = Text(claim_text)
    sentences = tuple(best_sentences(claim, passages))
    if not claim.term_set:
        return Verdict("weak", ("too short to be checked",), sentences)
    window = Text("\n".join(sentence.raw for sentence in sentences))
    share = _share(claim, sentences, passages)
    if any(_stands_in(claim, sentence) for passage in passages for sentence in passage.sentences):
        doubts = [*left_out_exceptions(claim, window)]
    elif passages and all(passage.evidence.is_computed for passage in passages):
        doubts = _computed_doubts(claim, passages, share)
    elif _is_foreign(claim, passages, share):
        doubts = [Doubt("the source is in another language", False), *_missing_figures(claim, passages)]
    else:
        doubts = [*doubts_about(claim, window, passages)]
        if share < SUPPORTED_FROM:
            doubts.append(Doubt("the source has few of its words", share < WEAK_FROM))
    reasons = tuple(dict.fromkeys(doubt.why for doubt in doubts))
    if any(doubt.is_grave for doubt in doubts):
        return Verdict("unsupported", reasons, sentences)
    return Verdict("weak" if doubts else "supported", reasons, sentences)


def _stands_in(claim: Text, sentence: Text) -> bool:
    """Whether the sentence begins with the claim as it stands, signs too, and no word or number goes on behind it.

    A beginning only: what stands before it may turn it around ("Not all employees ...").
    """
    said, its = claim.text.lstrip(_OPENING).rstrip(_CLOSING), sentence.text.lstrip(_OPENING)
    return bool(said) and its.startswith(said) and not _GOES_ON.match(its, len(said))


def _is_foreign(claim: Text, passages: Sequence[Passage], share: float) -> bool:
    scripts = {passage.script for passage in passages}
    if not scripts or claim.script in scripts:
        return False
    return share < WEAK_FROM or not scripts | {claim.script} <= {"english", "latin"}


def _share(claim: Text, sentences: Sequence[PassageSentence], passages: Sequence[Passage]) -> float:
    near = frozenset().union(
        *(sentence.term_set for sentence in sentences), *(item.above.term_set for item in passages)
    )
    words = frozenset(find_terms(claim.without_numbers)) or claim.term_set  # numbers are compared by their values
    return len(words & near) / len(words)


def _computed_doubts(claim: Text, passages: Sequence[Passage], share: float) -> list[Doubt]:
    """Of a claim that rests on rows or on a program's result: its figures must be there, whatever words are around."""
    if claim.quantities or claim.dates:
        return _missing_figures(claim, passages)
    return [Doubt("the source has few of its words", False)] if share < SUPPORTED_FROM else []


def _missing_figures(claim: Text, passages: Sequence[Passage]) -> list[Doubt]:
    """Numbers and dates of the claim that no passage has."""
    doubts = []
    for said in claim.quantities:
        has_it = any(said.equals(other) for passage in passages for other in passage.quantities) or any(
            value in date.numbers for passage in passages for date in passage.dates for value in said.values
        )
        if not has_it:
            doubts.append(Doubt(f"{said.text}: no such number in the source", not said.is_word))
    for date in claim.dates:
        others = [other for passage in passages for other in passage.dates]
        if not any(date.fits(other) or date.fits_but_for_the_year(other) for other in others):
            doubts.append(Doubt(f"{date.text}: no such date in the source", True))
    return doubts
