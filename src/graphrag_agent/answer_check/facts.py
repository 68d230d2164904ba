"""Compares facts of a claim with those of its source: numbers, dates, units, names, codes, negations, exceptions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from graphrag_agent.answer_check.names import find_codes, find_names
from graphrag_agent.answer_check.numbers import Quantity
from graphrag_agent.answer_check.passages import Passage, Text, find_terms, normalize
from graphrag_agent.answer_check.polarity import (
    count_negations,
    has_exception,
    opposites_in,
    rivals_in,
    with_prefixes,
)

_BY = re.compile(r"\bby\b|被|由")
_CLAUSE_SHARE = 0.5
"""Of a clause's words that the claim must have for the clause to be what it speaks of."""
_HAN_WEAK = frozenset("的了是在有和与及或被把对从到这那会要就都也很还其之于以而为所等能得可应须须该当日")
WORD_FOR_WORD = 0.6
"""Share of a claim's words from which a turned statement is another statement, and not just another sentence."""
_PREFIX = 5
"""Letters that two forms of a name must share."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why a claim is not what its source says, or may not be."""

    why: str
    is_grave: bool
    """Whether the source says something else, rather than less."""


def doubts_about(claim: Text, window: Text, passages: Sequence[Passage]) -> Iterator[Doubt]:
    """What the facts tell against the claim; `window` is the part of the passages that it speaks of."""
    yield from _numbers(claim, window, passages)
    yield from _dates(claim, window, passages)
    yield from _names(claim, passages)
    yield from _polarity(claim, window, passages)
    yield from _order(claim, window)
    yield from _substitutions(claim, window)


def _numbers(claim: Text, window: Text, passages: Sequence[Passage]) -> Iterator[Doubt]:
    near = window.quantities
    for said in claim.quantities:
        same = [other for other in near if said.equals(other)]
        if same:
            if said.bound and all(other.bound and other.bound != said.bound for other in same):
                yield Doubt(f"{said.text}: the source bounds it from the other side", True)
            continue
        if _is_year_or_day(said, window):
            continue
        if any(said.has_value_of(other) for other in near):
            yield Doubt(f"{said.text}: the source has the number with another unit", True)
        elif any(said.equals(other) for passage in passages for other in passage.quantities) or any(
            _is_year_or_day(said, passage) or said.text in passage.above.text for passage in passages
        ):
            yield Doubt(f"{said.text}: the source says it of something else", False)
        else:
            yield Doubt(f"{said.text}: no such number in the source", not said.is_word or bool(said.unit))


def _is_year_or_day(said: Quantity, text: Text) -> bool:
    return not said.unit and any(value in date.numbers for date in text.dates for value in said.values)


def _dates(claim: Text, window: Text, passages: Sequence[Passage]) -> Iterator[Doubt]:
    for said in claim.dates:
        if any(said.fits(other) for other in window.dates):
            continue
        everywhere = [other for passage in passages for other in passage.dates]
        if any(said.fits(other) for other in everywhere):
            yield Doubt(f"{said.text}: the source says it of something else", False)
        elif any(said.fits_but_for_the_year(other) for other in everywhere):
            yield Doubt(f"{said.text}: the source tells no year", False)
        else:
            yield Doubt(f"{said.text}: no such date in the source", True)


def _names(claim: Text, passages: Sequence[Passage]) -> Iterator[Doubt]:
    terms = frozenset().union(*(passage.term_set | passage.above.term_set for passage in passages))
    texts = " ".join(f"{passage.text} {passage.above.text}" for passage in passages)
    for code in find_codes(claim.raw):
        # not a part of a longer one: E-104 is not E-1042, v2.1 not v2.1.3
        if not re.search(rf"(?<![a-z\d]){re.escape(normalize(code))}(?![a-z\d]|[.-]\d)", texts):
            yield Doubt(f"{code}: not in the source", True)
    for name in dict.fromkeys(find_names(claim.raw)):
        own = find_terms(normalize(name))
        if (
            own
            and not all(term in terms or _is_form_of_one(term, terms) for term in own)
            and normalize(name) not in texts
        ):
            yield Doubt(f"{name}: no such name in the source", True)


def _is_form_of_one(term: str, terms: frozenset[str]) -> bool:
    return len(term) >= _PREFIX and any(other.startswith(term[:_PREFIX]) for other in terms)


def _polarity(claim: Text, window: Text, passages: Sequence[Passage]) -> Iterator[Doubt]:
    spoken_of = [clause for clause in window.clauses if _is_spoken_of(clause, claim)] or window.clauses
    its = " , ".join(clause.text for clause in spoken_of)
    mine = claim.text
    has_rival = False
    for said, instead in rivals_in(mine, its):
        has_rival = True
        yield Doubt(f"{said}: the source says {instead}", True)
    known = {*with_prefixes(window.terms), *(term for item in passages for term in with_prefixes(item.above.terms))}
    told = [term for clause in spoken_of for term in clause.terms]
    opposites = opposites_in(with_prefixes(claim.terms), with_prefixes(told), known=known)
    negations = count_negations(mine) - count_negations(its)
    # "not paid" is what "unpaid" says; a "paid" of something else alone is no doubt
    is_turned = (negations + len(opposites)) % 2 and (negations % 2 or any(item.is_of_same for item in opposites))
    if not has_rival and is_turned:
        why = [f"{item.said}: the source says {item.instead}" for item in opposites] or ["one of the two says not"]
        shared = len(claim.term_set.intersection(told)) + len(opposites)
        yield Doubt(why[0], shared >= WORD_FOR_WORD * len(claim.term_set))
    yield from left_out_exceptions(claim, window)
    if has_exception(mine) and not has_exception(window.text):
        yield Doubt("the source has no such exception", False)


def left_out_exceptions(claim: Text, window: Text) -> Iterator[Doubt]:
    """An exception in what the claim speaks of that it doesn't tell."""
    if has_exception(window.text) and not has_exception(claim.text):
        yield Doubt("the source has an exception", False)


def _order(claim: Text, window: Text) -> Iterator[Doubt]:
    """Two names that changed places in a sentence of the same words."""
    if not claim.term_set <= window.term_set or _BY.search(claim.text) or _BY.search(window.text):
        return
    names = [
        name for name in dict.fromkeys(find_names(claim.raw)) if claim.raw.count(name) == window.raw.count(name) == 1
    ]
    for one, other in pairwise(names):
        if window.raw.index(one) > window.raw.index(other):
            yield Doubt(f"{one}, {other}: the source has them the other way round", False)
            return


def _is_spoken_of(clause: Text, claim: Text) -> bool:
    return bool(clause.term_set) and len(clause.term_set & claim.term_set) >= _CLAUSE_SHARE * len(clause.term_set)


def _substitutions(claim: Text, window: Text) -> Iterator[Doubt]:
    """A word that stands where the source, otherwise word for word the same, has another."""
    mine, its = _units(claim), _units(window)
    if len(mine) < 4:
        return
    width = 2 if claim.script == "han" else 1
    places: dict[tuple[str, ...], list[int]] = {}
    for at in range(len(its) - width + 1):
        places.setdefault(tuple(its[at : at + width]), []).append(at + width)
    known = set(its)
    at = 0
    while at < len(mine):
        end = at
        while end < len(mine) and mine[end] not in known:
            end += 1
        if 0 < end - at <= width + 1 and at >= width:
            behind = mine[end : end + width]
            for place in places.get(tuple(mine[at - width : at]), ()):
                for other_end in range(place + 1, min(place + width + 2, len(its) + 1)):
                    if its[other_end : other_end + width] == behind and (behind or other_end == len(its)):
                        join = "" if width == 2 else " "
                        said, instead = join.join(mine[at:end]), join.join(its[place:other_end])
                        if not has_exception(f"{said} {instead}"):
                            yield Doubt(f"{said}: the source has another word there", False)
                        return
        at = max(end, at + 1)


def _units(text: Text) -> list[str]:
    """Words, or characters where words have no blanks; numbers, which are looked at elsewhere, left out."""
    if text.script == "han":
        return [sign for sign in text.without_numbers if sign.isalnum() and sign not in _HAN_WEAK]
    return list(find_terms(text.without_numbers))
