"""Content words of a text, stemmed: what the extractive model compares questions and sentences by.

Latin and Cyrillic words lose their endings, Chinese and other unspaced scripts become pairs of characters.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from functools import lru_cache
from typing import Any, Literal

Language = Literal["en", "zh", "ru"]

_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_UNSPACED = _HAN + "\u3040-\u30ff\u0e00-\u0eff\uac00-\ud7af"
_TOKEN = re.compile(rf"[{_UNSPACED}]+|[^\W_{_UNSPACED}]+(?:[-'’.][^\W_{_UNSPACED}]+)*")
_CYRILLIC = re.compile(r"[\u0400-\u04ff]")

_STOP_TEXT = """
a an the and or but if of in on at to for from by with about as into than then is are was were be been being do
does did have has had can could may might must shall should will would i me my we us our you your he she it its
they them their this that these those there here what which who whom whose when where why how much many long often
far not no any some all each please tell explain describe give show find list know want need get got let's also so
just like say says mean means does doesn't don't isn't what's who's it's i'm i'd am one ones
и или но а если в во на за к ко у о об от до из с со по для при над под не ни да нет же ли бы то что чем кто как
какой какая какое какие каков какова каковы когда где куда откуда почему зачем сколько чей это этот эта эти тот та
те того этого я мы ты вы он она оно они мне нам вам его ее её их мой наш ваш мой себя есть быть был была были будет
может можно нужно надо должен должна должны ещё еще уже только также тоже там тут здесь так такой такая такие
пожалуйста скажи скажите расскажи расскажите объясни объясните покажи найди
"""
STOP_WORDS = frozenset(_STOP_TEXT.split())

STOP_PHRASES = re.compile(
    "请问|请|一下|告诉我|什么时候|什么样|为什么|什么|怎么样|怎么|怎样|如何|是否|可以|能否|能不能|可不可以|多少|多久|多长|多大|"
    "哪里|哪些|哪个|哪种|哪一|哪|谁|何时|何地|几|吗|呢|吧|啊|了|的|是|在|有|和|与|及|或|被|把|对|从|到|我们|你们|他们|我|你|他|她|它|"
    "这|那|会|要|应该|需要|能|就|都|也|很|还"
)
"""Chinese question and function words: a question is cut at them before it becomes pairs."""


def detect_language(text: str) -> Language:
    """The language to answer in: Chinese, Russian or (for everything else) English."""
    if re.search(f"[{_HAN}]", text) and not re.search("[\u3040-\u30ff]", text):
        return "zh"
    return "ru" if _CYRILLIC.search(text) else "en"


def find_question_words(text: str) -> dict[str, str]:
    """Stem -> word as written, in order, of the words that carry a question's meaning."""
    found: dict[str, str] = {}
    for token in _TOKEN.findall(unicodedata.normalize("NFKC", text)):
        if re.match(f"[{_UNSPACED}]", token):
            for run in STOP_PHRASES.sub(" ", token).split():
                found.update((pair, run) for pair in _pairs(run))
        elif token.casefold() not in STOP_WORDS:
            found.update((stem, token) for stem in _stems(token) if stem not in found)
    return found


@lru_cache(maxsize=4096)
def find_words(text: str) -> frozenset[str]:
    """Stems of all words in the text, single characters of unspaced scripts included."""
    found: set[str] = set()
    for token in _TOKEN.findall(unicodedata.normalize("NFKC", text)):
        if re.match(f"[{_UNSPACED}]", token):
            found.update(_pairs(token), token)
        else:
            found.update(_stems(token))
    return frozenset(found)


def _pairs(run: str) -> list[str]:
    return [run[at : at + 2] for at in range(len(run) - 1)] or [run]


def _stems(token: str) -> list[str]:
    word = token.casefold().replace("ё", "е").replace("’", "'").removesuffix("'s")
    parts = re.split(r"[-.']", word) if re.search(r"[-.']", word) else []
    return [_stem(part) for part in [word, *parts] if part and part not in STOP_WORDS]


_lock = threading.Lock()


@lru_cache(maxsize=65_536)
def _stem(word: str) -> str:
    with _lock:  # a stemmer keeps the word it works on
        return str(_load_stemmer("russian" if _CYRILLIC.search(word) else "english").stemWord(word))


@lru_cache
def _load_stemmer(language: str) -> Any:
    import snowballstemmer

    return snowballstemmer.stemmer(language)
