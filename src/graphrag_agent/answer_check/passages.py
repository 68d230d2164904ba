"""A passage of evidence as the check reads it: its sentences, their words and facts, each worked out when needed."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import cached_property, lru_cache

from graphrag_agent.answer_check.dates import Date, find_dates
from graphrag_agent.answer_check.numbers import Quantity, find_quantities
from graphrag_agent.citations import Evidence
from graphrag_agent.models.sentences import split_sentences
from graphrag_agent.models.words import STOP_WORDS
from graphrag_agent.retrieval.tokenizer import tokenize

_HAN = re.compile("[\u3040-\u30ff\u3400-\u9fff]")
_HAN_STOP = frozenset("的了是在有和与及或被把对从到这那会要就都也很还其之于以而为所等中上下个")
_CYRILLIC = re.compile("[а-яё]", re.IGNORECASE)
_LATIN = re.compile("[a-z]", re.IGNORECASE)
_HYPHENS = re.compile("[\u2010-\u2015\u2212]")
_ENGLISH_TEXT = "the of and to is are for that with be by on as or must may not at from have"
_ENGLISH_SIGNS = frozenset(_ENGLISH_TEXT.split())
SCRIPT_CHARACTERS = 500
"""Of a text that tell which writing it is in."""
MAX_FACTS = 300
"""Numbers and dates of one text that are looked at."""
MOST_SENTENCES = 3
"""That one claim is held against."""
MORE = 0.15
"""Share of a claim's words that a further sentence must add."""
_CLAUSE_ENDS = re.compile(r"(?<!\d)[,，]|[,，](?!\d)|[;:；：、()（）。]| - ")


def normalize(text: str) -> str:
    """Lower case, plain hyphens, full-width forms made narrow, blanks single."""
    folded = unicodedata.normalize("NFKC", text).casefold().replace("ё", "е")
    return " ".join(_HYPHENS.sub("-", folded).split())


@lru_cache(maxsize=4096)
def find_terms(text: str) -> tuple[str, ...]:
    """Stems of the words that carry meaning, in order; pairs of characters where words have no blanks."""
    terms = tokenize(" ".join(word for word in text.split() if word.strip(".,;:!?()\"'") not in STOP_WORDS))
    if not _HAN.search(text):
        return tuple(terms)
    kept = [term for term in terms if len(term) > 1 or not _HAN.match(term)]
    return tuple(term for term in kept if not (_HAN.match(term) and _HAN_STOP & set(term)))


class Text:
    """A sentence, or several as one."""

    def __init__(self, text: str) -> None:
        self.raw = text
        self.text = normalize(text)

    @cached_property
    def terms(self) -> tuple[str, ...]:
        """Its words that carry meaning, in order."""
        return find_terms(self.text)

    @cached_property
    def term_set(self) -> frozenset[str]:
        """The same, each once."""
        return frozenset(self.terms)

    @cached_property
    def dates(self) -> list[Date]:
        """Its dates."""
        return find_dates(self.text)[:MAX_FACTS]

    @cached_property
    def quantities(self) -> list[Quantity]:
        """Its numbers, those in dates apart."""
        return find_quantities(_masked(self.text, self.dates))[:MAX_FACTS]

    @cached_property
    def without_numbers(self) -> str:
        """Its text with `#` for each number and date."""
        return _masked(_masked(self.text, self.dates), self.quantities, sign="#")

    @cached_property
    def script(self) -> str:
        """Which writing it mostly is: han, cyrillic or latin; latin is English or another language."""
        begin = self.text[:SCRIPT_CHARACTERS]
        han, cyrillic, latin = (len(form.findall(begin)) for form in (_HAN, _CYRILLIC, _LATIN))
        if han * 2 >= max(cyrillic, latin) and han:
            return "han"
        if cyrillic > latin:
            return "cyrillic"
        words = self.text.split()
        is_english = len(words) < 8 or any(word in _ENGLISH_SIGNS for word in words)
        return "english" if is_english else "latin"

    @cached_property
    def clauses(self) -> list[Text]:
        """Its parts between commas and the like."""
        return [Text(part) for part in _CLAUSE_ENDS.split(self.text) if part and any(map(str.isalnum, part))]


class Passage(Text):
    """The text of one piece of evidence, under its title and headings."""

    def __init__(self, evidence: Evidence) -> None:
        super().__init__(evidence.text)
        self.evidence = evidence
        self.above = Text(f"{evidence.title}\n{evidence.heading}")

    @cached_property
    def sentences(self) -> list[PassageSentence]:
        """In order, headings too."""
        return [PassageSentence(item.text, self.evidence, item.start) for item in split_sentences(self.raw)]


class PassageSentence(Text):
    """A sentence of a passage, and where it stands in its document."""

    def __init__(self, text: str, evidence: Evidence, at: int) -> None:
        super().__init__(text)
        self.evidence = evidence
        self.start = evidence.start + at
        self.end = self.start + len(text)


def _masked(text: str, spans: Sequence[Date | Quantity], *, sign: str = "|") -> str:
    """The text, as long as it was, with the spans gone."""
    for span in spans:
        text = (
            text[: span.start] + f" {sign} ".center(span.end - span.start)[: span.end - span.start] + text[span.end :]
        )
    return text


def best_sentences(claim: Text, passages: Sequence[Passage]) -> list[PassageSentence]:
    """The sentences that together hold most of the claim's words, in the order in which they add to it."""
    words = frozenset(term for term in claim.term_set if not term[0].isdigit()) or claim.term_set
    left = [sentence for passage in passages for sentence in passage.sentences]
    chosen: list[PassageSentence] = []
    covered: frozenset[str] = frozenset()
    least = 1
    while left and len(chosen) < MOST_SENTENCES:
        # a number decides only between sentences that are alike: it may well be another sentence's
        best = max(left, key=lambda it: (len(it.term_set & words - covered), len(it.term_set & claim.term_set)))
        if len(best.term_set & words - covered) < least:
            break
        chosen.append(best)
        covered |= best.term_set & words
        least = max(1, round(MORE * len(words)))
        left.remove(best)
    return chosen
