"""Says where cited sources disagree: nearly the same words, another number or date.

Careful on purpose: rows of a price list, steps of a scale and figures of several years are no conflict.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from graphrag_agent.answer_check.dates import Date
from graphrag_agent.answer_check.names import find_codes
from graphrag_agent.answer_check.numbers import Quantity
from graphrag_agent.answer_check.passages import Passage, PassageSentence, find_terms
from graphrag_agent.answer_check.polarity import rivals_in

MIN_SHARED = 2
"""Words that two sentences must share to speak of the same thing."""
MAX_OTHER = 0.34
"""Share of words that only one of the two may have."""
MAX_COMPARED = 400
"""Sentences that one sentence is compared with."""


@dataclass(frozen=True, slots=True)
class _Fact:
    text: str
    kind: str
    value: Quantity | Date

    def differs(self, other: _Fact) -> bool:
        if isinstance(self.value, Date) and isinstance(other.value, Date):
            return not self.value.fits(other.value) and not other.value.fits(self.value)
        if isinstance(self.value, Quantity) and isinstance(other.value, Quantity):
            return not self.value.equals(other.value)
        return False


def find_conflicts(used: Sequence[PassageSentence], passages: Sequence[Passage]) -> Iterator[str]:
    """A note for each pair of passages that disagree; `used`: the sentences that the answer rests on."""
    told: set[frozenset[str]] = set()
    for sentence in used:
        if (mine := _only_fact(sentence)) is None:
            continue
        for passage in passages:
            pair = frozenset({sentence.evidence.id, passage.evidence.id})
            if len(pair) == 1 or pair in told or _is_another_section(sentence, passage):
                continue
            for other in passage.sentences[:MAX_COMPARED]:
                if (its := _conflict(sentence, mine, other)) is not None:
                    told.add(pair)
                    yield (
                        f"sources [{sentence.evidence.id}] and [{passage.evidence.id}] differ: "
                        f"{mine.text!r} and {its.text!r}"
                    )
                    break


def _conflict(sentence: PassageSentence, mine: _Fact, other: PassageSentence) -> _Fact | None:
    """The fact of the other sentence, where it is about the same and says something else."""
    shared = sentence.term_set & other.term_set  # cheap, and mostly the end of it
    if len(shared) < MIN_SHARED:
        return None
    its = _only_fact(other)
    if its is None or its.kind != mine.kind or not mine.differs(its):
        return None
    ours, theirs = (frozenset(find_terms(item.without_numbers)) - _PLAIN for item in (sentence, other))
    shared = ours & theirs
    if len(shared) < MIN_SHARED or len(ours ^ theirs) > MAX_OTHER * len(ours | theirs):
        return None
    if ours - theirs and theirs - ours:
        return None  # each has a word in the other's place: another row, another year, another group
    return None if rivals_in(sentence.text, other.text) else its


_PLAIN = frozenset(
    find_terms(
        "lasts last gets get receives receive entitled given amounts equals totals granted provides takes up "
        "составляет составляют равен равна длится получает получают положено "
        "为 是 有 享有 享受 可享 共 达"
    )
)
"""Verbs that put a number beside its subject; one for another changes nothing."""


def _only_fact(sentence: PassageSentence) -> _Fact | None:
    """The one number or date of a sentence; None where it has several, or an identifier, which tells rows apart."""
    if find_codes(sentence.raw):
        return None
    quantities = [item for item in sentence.quantities if not _is_year(item)]
    if len(quantities) + len(sentence.dates) != 1 or len(quantities) != len(sentence.quantities):
        return None
    if sentence.dates:
        date = sentence.dates[0]
        return _Fact(date.text, "date", date)
    return _Fact(quantities[0].text, quantities[0].dimension, quantities[0])


def _is_year(item: Quantity) -> bool:
    return not item.unit and all(1500 <= value <= 2100 for value in item.values)


def _is_another_section(sentence: PassageSentence, passage: Passage) -> bool:
    """Parts of one document under other headings speak of other things."""
    return sentence.evidence.origin == passage.evidence.origin and sentence.evidence.heading != passage.evidence.heading
