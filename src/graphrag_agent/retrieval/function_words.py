"""Words that make a sentence of a query and say nothing of its subject, and how little they weigh in BM25. Pure.

The idf alone doesn't see to that: "what", "did" and "the" are rare in tables and headings, and a question asked of
a knowledge base of those found the few passages of prose that have them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

from graphrag_agent.retrieval.tokenizer import count_terms

FUNCTION_WEIGHT = 0.2
"""Of a function word in a query, beside 1 for others.

Not 0: among texts that have all the rest, "vitamin A" is better found where it says A. Measured in docs/benchmarks.md.
"""

_WORDS_TEXT = {
    "en": """
a an the and if of in at to for from by with about into than then is are was were be been being do does did have has
had could must shall should would i me my we us our you your he she it its they them their this that these those
there what which who whom whose when where why how much many please what's who's where's how's it's i'm don't doesn't
didn't isn't aren't wasn't weren't can't won't
""",
    "de": """
der das dem des ein eine einen einem einer eines und oder aber wenn von im zu zum zur für bei aus als wie wann wo
warum wer welche welcher welches welchen wird wurde wurden werden ist sind waren haben hatte kann können sie er es
ich wir ihr viele viel
""",
    "ru": """
и или но а если в во на за к у о об от до из с со по для при над под не что чем кто как какой какая какое какие когда
где куда откуда почему зачем сколько это этот эта эти тот та те он она оно они был была было были есть
""",
    "fr": """
le la un une du de et ou sont qui que quoi quel quelle quels quelles est-ce comment pourquoi quand où dans avec au aux
""",
    "es": "el la un unas unos una qué quién cuál cuáles cómo cuándo dónde por para del al",
}
_HOMOGRAPHS_TEXT = {
    "en": "or but not on as can may might will here show find tell explain",
    "de": "die den war hat mit in an am auf was",
    "fr": "les des est sur pour par en",
    "es": "los las y o es son con de en",
    "ru": "",
}
"""Function words that mean something in another language: "war", "or" (French: gold), "Los", "MIT".

They count as such only beside a sure function word of their language.
"""
_NAMES_TEXT = "a i me he von zu der dem de du la le el del un et"
"""Function words that say nothing of the query's language: other languages and names have them ("van der Waals")."""
_IN_NAMES = frozenset(_NAMES_TEXT.split())
_WORDS = {language: frozenset(text.split()) for language, text in _WORDS_TEXT.items()}
_HOMOGRAPHS = {language: frozenset(text.split()) for language, text in _HOMOGRAPHS_TEXT.items()}
_ALL_WORDS = frozenset[str]().union(*_WORDS.values())
_ANY_WORDS = _ALL_WORDS.union(*_HOMOGRAPHS.values())


def _sure_words(language: str) -> frozenset[str]:
    others = (_WORDS[other] | _HOMOGRAPHS[other] for other in _WORDS if other != language)
    return _WORDS[language].difference(_IN_NAMES, *others)


_SURE = {language: _sure_words(language) for language in _HOMOGRAPHS}

_FUNCTION_PHRASES = (
    "请问|请|告诉我|什么时候|为什么|什么|怎么样|怎么|怎样|如何|是否|多少|哪里|哪些|哪个|谁|吗|呢|吧|的|是|在"
)
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff"
_WORD_OR_PHRASE = re.compile(
    rf"(?P<phrase>{_FUNCTION_PHRASES})|(?P<elision>\b(?i:l|d|qu)['’](?=\w)(?!s\b))|(?:[^\W{_UNSPACED}]|['’./@:+#-])+"
)
_EDGES = "'’./@:+#-"
_SENTENCE_END = re.compile(r"[.?!:;。？！：；\n]")


class Split(NamedTuple):
    """A query's function words, and the query without them."""

    function_words: list[str]
    rest: str


def split_function_words(query: str) -> Split:
    """Normalized to NFKC, as the index is; punctuation stays in `rest`."""
    text = unicodedata.normalize("NFKC", query)
    words = [match for match in _WORD_OR_PHRASE.finditer(text) if not match.lastgroup]
    names = _names(text, words)
    said = {_folded(match[0]) for match in words if match.start() not in names}
    known = _ALL_WORDS.union(*(_HOMOGRAPHS[language] for language, sure in _SURE.items() if said & sure))
    found: list[str] = []

    def cut(match: re.Match[str]) -> str:
        if not match.lastgroup and (match.start() in names or _folded(match[0]) not in known):
            return match[0]
        found.append(match[0].strip(_EDGES))
        return " "

    rest = _WORD_OR_PHRASE.sub(cut, text)
    return Split(found, rest)


def weigh_terms(query: str) -> dict[str, float]:
    """Index term -> its weight in the query: how often it is there, times little for a function word.

    A query of nothing else ("The Who", "to be or not to be") keeps the weight of all.
    """
    counts = count_terms(query)
    split = split_function_words(query)
    said = count_terms(split.rest).keys()
    light = count_terms(" ".join(split.function_words)).keys() - said
    if not said:
        return {term: float(count) for term, count in counts.items()}
    return {term: count * (FUNCTION_WEIGHT if term in light else 1.0) for term, count in counts.items()}


def _folded(word: str) -> str:
    return word.strip(_EDGES).casefold().replace("’", "'")


def _names(text: str, words: Sequence[re.Match[str]]) -> set[int]:
    """Where the words begin that their capitals make names: WHO, IT, "vitamin A", Will Smith.

    Not where a sentence begins, and not in a query that is all capitals.
    """
    if _is_shouted(text, words):
        return set()
    found, end = set(), 0
    for match in words:
        between = text[max(end - 1, 0) : match.start()]
        begins = bool(_SENTENCE_END.search(between)) or not (end or any(sign.isalnum() for sign in between))
        if _is_name(match[0], begins_sentence=begins):
            found.add(match.start())
        end = match.end()
    return found


def _is_name(word: str, *, begins_sentence: bool) -> bool:
    stem = re.split("['’]", word.strip(_EDGES))[0]  # WHO's
    if not stem[:1].isupper() or stem == "I":
        return False
    return not begins_sentence or (len(stem) > 1 and stem.isupper())


def _is_shouted(text: str, words: Sequence[re.Match[str]]) -> bool:
    """Whether capitals say nothing. A name alone, or one in Chinese, is no shout."""
    others = [match for match in words if match[0].isupper() and _folded(match[0]) not in _ANY_WORDS]
    return len(others) > 1 and all(sign.isupper() for sign in text if sign.isalpha())
