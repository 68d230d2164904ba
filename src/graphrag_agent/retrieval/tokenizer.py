"""Text to index terms, the same for every lexical index; language is told by script, never asked for.

`tokenize` is the entry. Words are stemmed by script, scripts without spaces become one- and two-character terms, and
identifiers (`E-1042`, `v2.1.3`) are kept whole beside their parts.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections import Counter
from functools import lru_cache
from typing import Any

MAX_IDENTIFIER_LENGTH = 64
"""A longer run (a whole URL, base64) is only split: nobody types it as a query."""

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Myanmar, Khmer
    "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af"  # Hangul: spaced, but its particles are glued to the word
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff"  # kana and iteration marks
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han
)
_MARKS = "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u0670\u06d6-\u06dc\u0900-\u0963\u0966-\u0dff"
"""Combining marks and the Indic blocks: parts of words that `\\w` leaves out."""
_WORD = rf"(?:(?![{_UNSPACED}])[\w{_MARKS}])+"
_JOINT = r"(?:[-./@:'’]|(?<=\d),(?=\d))"
_EMOJI = "\u2600-\u27bf\U0001f1e6-\U0001f1ff\U0001f300-\U0001f3fa\U0001f400-\U0001faff"
"""Without skin tones: a thumb is a thumb."""
_RUN = re.compile(
    rf"(?P<unspaced>[{_UNSPACED}]+)|(?P<emoji>[{_EMOJI}])|(?P<run>[^\W\d_](?:\+\+|\#)(?!\w)|{_WORD}(?:{_JOINT}{_WORD})*)"
)
_SEPARATORS = re.compile(r"[-./@:'’,_+#]+")
_IDENTIFIER_MARK = re.compile(r"[\d_@./+#]")
_DROPPED = re.compile("[\u00ad\u0640\u064b-\u065f\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff\ud800-\udfff]")
"""Soft hyphens, zero-width and direction marks, Arabic vowel signs and stretching, halves of broken characters."""

_HYPHENS = re.compile("[\u2010-\u2015\u2212]")
"""Word processors write them for `-`, in `E-1042` too."""

_STEMMERS = (
    (re.compile("[a-z\u00c0-\u024f]"), "english"),
    (re.compile("[\u0400-\u052f]"), "russian"),
    (re.compile("[\u0370-\u03ff\u1f00-\u1fff]"), "greek"),
    (re.compile("[\u0600-\u06ff]"), "arabic"),
    (re.compile("[\u0530-\u058f]"), "armenian"),
    (re.compile("[\u0900-\u097f]"), "hindi"),
    (re.compile("[\u0b80-\u0bff]"), "tamil"),
)
_stemming = threading.Lock()


def tokenize(text: str) -> list[str]:
    """Index terms of the text, in order, repeated as often as they occur."""
    terms: list[str] = []
    for match in _RUN.finditer(_normalized(text)):
        if match.lastgroup == "unspaced":
            terms += _grams(match[0])
        elif match.lastgroup == "emoji":
            terms.append(match[0])
        else:
            terms += _words(match[0])
    return terms


def count_terms(text: str) -> dict[str, int]:
    """Index term -> how often the text has it."""
    return dict(Counter(tokenize(text)))


def _normalized(text: str) -> str:
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return _HYPHENS.sub("-", _DROPPED.sub("", folded)).replace("ё", "е")


def _grams(run: str) -> list[str]:
    return [*run, *(run[at : at + 2] for at in range(len(run) - 1))]


def _words(run: str) -> list[str]:
    parts = [part for part in _SEPARATORS.split(run) if part]
    terms = [_stem(part) for part in parts]
    if terms and run not in parts and len(run) <= MAX_IDENTIFIER_LENGTH and _IDENTIFIER_MARK.search(run):
        return [run, *terms]
    return terms


@lru_cache(maxsize=100_000)
def _stem(word: str) -> str:
    if any(character.isdigit() for character in word):
        return word
    for letters, language in _STEMMERS:
        if letters.match(word):
            with _stemming:  # a Snowball stemmer keeps its word in itself
                return str(_stemmer(language).stemWord(word))
    return word


@lru_cache(maxsize=len(_STEMMERS))
def _stemmer(language: str) -> Any:
    import snowballstemmer

    return snowballstemmer.stemmer(language)
