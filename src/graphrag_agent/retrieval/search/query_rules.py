"""Extra queries without a model: what a question quotes and names, its parts, else its content words. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from graphrag_agent.retrieval.function_words import split_function_words
from graphrag_agent.retrieval.tokenizer import tokenize

_QUOTES = ('""', "“”", "«»", "「」", "『』")
_QUOTED = re.compile("|".join(f"{pair[0]}([^{pair[1]}\n]{{2,120}}){pair[1]}" for pair in _QUOTES))
_IDENTIFIER = re.compile(r"(?<!\w)(?=[\w./@:+#-]*\d)(?=[\w./@:+#-]*[^\W\d_])[\w][\w./@:+#-]*[\w]|(?<!\w)\w+_\w+")
_CAPITALISED = r"(?:[A-ZÀ-ÖØ-ÞА-ЯЁ][\w'’.-]*)"
_NAME = re.compile(rf"(?<!\w){_CAPITALISED}(?:\s+(?:(?:of|the|de|von|van|la)\s+){{0,2}}{_CAPITALISED})+")
_SENTENCE_END = re.compile(r"(?<=[?？!！;；。])\s*|\n+|(?<=[^\d\s]\.)\s+(?=\S)")
_CONJUNCTION = re.compile(
    r"\s+(?:and|or|versus|vs\.?|und|oder|et|ou|y|и|или|а также)\s+"
    r"|(?:以及|还是|或者|并且|和|与|および|または)"
    r"|\s+(?:أو|و(?=ال))\s*",
    re.IGNORECASE,
)
_MIN_PART_TERMS = 2
"""One word that stands beside "and" is seldom a question of its own."""

_WORD = re.compile(r"[\w'’./@:+#-]+")


def extra_queries(query: str) -> list[str]:
    """Other queries for the same question, the surest first; none for one of function words alone."""
    return [*_quoted(query), *_names(query), *_parts(query)] or _content_words(query)


def _quoted(query: str) -> Iterator[str]:
    for match in _QUOTED.finditer(query):
        yield next(group for group in match.groups() if group)
    yield from (match[0] for match in _IDENTIFIER.finditer(query))


def _names(query: str) -> list[str]:
    """Names of two words and more, where there are two such names: each may have a document of its own."""
    found = [match[0].split() for match in _NAME.finditer(query)]
    function_words = split_function_words(query).function_words
    # a question begins with a capital too
    names = [words[1:] if words[0] in function_words else words for words in found]
    several = [" ".join(words) for words in names if len(words) > 1]
    return several if len(several) > 1 else []


def _parts(query: str) -> list[str]:
    sentences = [part for part in _SENTENCE_END.split(query) if part and part.strip()]
    parts = sentences if len(sentences) > 1 else _CONJUNCTION.split(query)
    long_enough = [part.strip(" ,，、") for part in parts if len(set(_terms(part))) >= _MIN_PART_TERMS]
    return long_enough if len(parts) > 1 else []


def _content_words(query: str) -> list[str]:
    words = " ".join(_WORD.findall(split_function_words(query).rest))
    return [words] if words else []


def _terms(text: str) -> list[str]:
    """Index terms that carry meaning."""
    return tokenize(split_function_words(text).rest)
