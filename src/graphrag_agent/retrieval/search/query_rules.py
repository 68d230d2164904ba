"""Extra queries without a model: what a question quotes and names, its parts, else its content words. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

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

_FUNCTION_TEXT = """
a an the and or but if of in on at to for from by with about as into than then is are was were be been being do does
did have has had can could may might must shall should will would i me my we us our you your he she it its they them
their this that these those there here what which who whom whose when where why how much many please tell explain
show find
der die das den dem des ein eine einen einem einer eines und oder aber wenn von in im an am auf zu zum zur für mit bei
aus als wie wann wo warum wer was welche welcher welches wird wurde werden ist sind war waren hat haben hatte kann
können sie er es ich wir ihr
и или но а если в во на за к у о об от до из с со по для при над под не что чем кто как какой какая какое какие когда
где куда откуда почему зачем сколько это этот эта эти тот та те он она оно они был была было были есть
le la les un une des du de et ou est sont qui que quoi quel quelle quels quelles comment pourquoi quand où dans sur
pour par avec
el los las una unos unas y o es son qué quién cuál cuáles cómo cuándo dónde por para con del al en
"""
_FUNCTION_WORDS = frozenset(_FUNCTION_TEXT.split())
_QUESTION_PHRASES = re.compile(
    "请问|请|告诉我|什么时候|为什么|什么|怎么样|怎么|怎样|如何|是否|多少|哪里|哪些|哪个|谁|吗|呢|吧|的|是|在"
)
_WORD = re.compile(r"[\w'’./@:+#-]+")
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")


def extra_queries(query: str) -> list[str]:
    """Other queries for the same question, the surest first; none for a query that is short and plain."""
    return [*_quoted(query), *_names(query), *_parts(query)] or _content_words(query)


def _quoted(query: str) -> Iterator[str]:
    for match in _QUOTED.finditer(query):
        yield next(group for group in match.groups() if group)
    yield from (match[0] for match in _IDENTIFIER.finditer(query))


def _names(query: str) -> list[str]:
    """Names of two words and more, where there are two such names: each may have a document of its own."""
    found = [match[0].split() for match in _NAME.finditer(query)]
    # a question begins with a capital too
    names = [words[1:] if words[0].casefold() in _FUNCTION_WORDS else words for words in found]
    several = [" ".join(words) for words in names if len(words) > 1]
    return several if len(several) > 1 else []


def _parts(query: str) -> list[str]:
    sentences = [part for part in _SENTENCE_END.split(query) if part and part.strip()]
    parts = sentences if len(sentences) > 1 else _CONJUNCTION.split(query)
    long_enough = [part.strip(" ,，、") for part in parts if len(set(_terms(part))) >= _MIN_PART_TERMS]
    return long_enough if len(parts) > 1 else []


def _content_words(query: str) -> list[str]:
    if _UNSPACED.search(query):
        words = _QUESTION_PHRASES.sub(" ", query).split()
    else:
        words = [word for word in _WORD.findall(query) if word.casefold() not in _FUNCTION_WORDS]
    return [" ".join(words)] if words else []


def _terms(text: str) -> list[str]:
    """Index terms that carry meaning."""
    words = [word for word in _WORD.findall(_QUESTION_PHRASES.sub(" ", text)) if word.casefold() not in _FUNCTION_WORDS]
    return tokenize(" ".join(words))
