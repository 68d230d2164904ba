"""What turns a statement around: negations, exceptions, and words that exclude each other."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence, Set
from itertools import pairwise
from typing import NamedTuple

from graphrag_agent.answer_check.numbers import BOUND_WORDS
from graphrag_agent.retrieval.polarity_words import EXCEPTION_WORDS, NEGATION_WORDS

_HAN = "\u3400-\u9fff"
_NEUTRAL = re.compile(
    r"\bnot only\b|\bnot just\b|\bwhether or not\b|\bno (?:matter|doubt|longer than)\b|\bno\. ?(?=\d)"
    r"|\bnot to mention\b"
    r"|\bне только\b|\bтем не менее\b|\bне раз\b|\bне что иное\b|\bникогда\b(?=\s+не\b)|\bни\b"
    r"|不得不|不仅|不但|不同|不断|不过|不久|不少|不管|不论|不一定|无论|无线|无限|无非"
    r"|非常|非洲|未来|未必|否则|是否|能否|可否|除非|莫斯科|没收"
)
_FORBIDDING = (
    r"prohibit\w*|forbid\w*|forbade|banned|bans?|disallow\w*|barred|unable|ineligible|invalid|impossible|unlawful|illegal"
    r"|neither|nor|none|nobody|nothing|nowhere|unavailable|unauthori[sz]ed|refus\w+|lacks?|lacking"
    r"|нельзя|запрещ\w+|запрет\w*|отказ\w*|невозможн\w+|недопустим\w+|недействительн\w+|никто|ничего|отсутству\w+"
)
_WORDS = "|".join(
    sorted((word for word in NEGATION_WORDS - {"t", "ни"} if not re.match(f"[{_HAN}]", word)), key=len, reverse=True)
)
_NEGATION = re.compile(
    rf"\b(?:{_WORDS}|{_FORBIDDING})\b|n['’]t\b"
    r"|禁止|严禁|勿|[不没沒未]|[无無](?!锡|疑|穷)|(?<![是莫除])非(?!常|洲)"
)
_EXCEPTION = re.compile(
    rf"\b(?:{'|'.join(word for word in EXCEPTION_WORDS if not re.match(f'[{_HAN}]', word))}|exclud\w*|"
    r"other than|apart from|but not|only if|exempt\w*|за исключением|если не|исключая|исключени\w+)\b"
    r"|除非|除了|除[^。，,]{1,30}(?:外|之外)|例外|不包括|不含"
)

_RIVAL_TEXT = r"""
before|prior to|until|до|以前|之前
after|following|since|после|以后|之后

must|shall|required|mandatory|obligatory|обязан\w*|должн\w+|обязательн\w+|必须|应当|应该
optional\w*|voluntary|по желанию|необязательн\w+|добровольн\w+|自愿|可选

allow\w*|permit\w*|разреш\w+|допуска\w+|允许|准许
prohibit\w*|forbid\w*|banned|запрещ\w+|禁止|严禁

always|всегда|总是|始终
never|никогда|从不|从未
sometimes|иногда|有时

increas\w*|rise|rises|rose|raised?|grew|grow\w*|увелич\w+|повыш\w+|рост|вырос\w*|增加|上升|提高|增长
decreas\w*|fall|falls|fell|drop\w*|reduc\w*|declin\w*|уменьш\w+|сниж\w+|снизил\w*|сократ\w+|减少|下降|降低

include[sd]?|including|включ\w+|包括
exclude[sd]?|excluding|except|исключ\w+|кроме|不包括|除外

minimum|минимальн\w+|最低|最小
maximum|максимальн\w+|最高|最大

employer\w*|работодател\w+|雇主
employee\w*|работник\w*|сотрудник\w*|雇员|员工

daily|ежедневн\w+|每天|每日
weekly|еженедельн\w+|每周
monthly|ежемесячн\w+|每月
quarterly|ежеквартальн\w+|每季度
annual\w*|yearly|per year|a year|ежегодн\w+|每年

monday\w*|понедельник\w*|星期一|周一
tuesday\w*|вторник\w*|星期二|周二
wednesday\w*|сред[аеуы]|星期三|周三
thursday\w*|четверг\w*|星期四|周四
friday\w*|пятниц\w+|星期五|周五
saturday\w*|суббот\w+|星期六|周六
sunday\w*|воскресень\w+|星期日|星期天|周日

north\w*|север\w*|北部|北方|北侧
south\w*|юг\w*|южн\w+|南部|南方|南侧

east\w*|восток\w*|восточн\w+|东部|东方|东侧
west\w*|запад\w*|西部|西方|西侧

left|лев(?:ый|ая|ое|ую|ой|ом|ого)|左侧|左边
right|прав(?:ый|ая|ое|ую|ой|ом|ого)|右侧|右边

first|перв\w+|第一
second|втор\w+|第二
third|трет\w+|第三
last|последн\w+|最后

open\w*|откры\w+|打开|开放
closed?|закры\w+|关闭

full-time|полн\w+ занятост\w+|全职
part-time|частичн\w+ занятост\w+|兼职

hot|горяч\w+
cold|холодн\w+

accept\w*|принима\w+|接受
reject\w*|отклон\w+|拒绝

buy\w*|purchas\w*|покуп\w+|购买
sell\w*|sold|прода\w+|出售

all|every|each|все|всех|всем|кажд\w+|所有|全部|一切
some|certain|several|некотор\w+|部分|一些|有些
none|никто|никак\w+

enabled?|enables|включен\w*|启用
disabled?|disables|отключ\w+|выключ\w+|禁用|停用

public\w*|публичн\w+|公开
private\w*|confidential|частн\w+|конфиденциальн\w+|保密|私人
"""
_RIVALS = tuple(
    tuple(re.compile(rf"(?<![a-zа-я])(?:{side})(?![a-zа-я])") for side in group.replace("|\n", "|").splitlines())
    for group in _RIVAL_TEXT.strip().split("\n\n")
)
"""Groups of words of which a statement means one, in three languages."""
_ANY_RIVAL = re.compile(
    "|".join(f"(?P<g{at}>{'|'.join(side.pattern for side in group)})" for at, group in enumerate(_RIVALS))
)


_PREFIXES = ("un", "non", "не")
"""That turn a word around; `in-` and `dis-` as often begin a word of its own ("income", "discover")."""
_LEAST_LETTERS = 4
"""Of a word that a prefix turns around: with fewer, one word in another is chance."""
_NO_PAIR = re.compile(
    "unabl|ineligibl|unlaw|unavail|unauthor|недопустим|недействительн|невозможн|unless|некотор|нескольк"
)
"""Stems with a prefix that are negations already, and those that only look like another word ("less") with one."""


class Opposite(NamedTuple):
    """A stem of a claim, and the one of its source that a prefix sets apart from it."""

    said: str
    instead: str
    is_of_same: bool
    """Whether both stand beside the same word, so that they tell of one thing."""


def count_negations(text: str) -> int:
    """How often the text in lower case turns a statement around; bounds like "not more than" don't count."""
    if not _NEGATION.search(text):
        return 0
    return len(_NEGATION.findall(_NEUTRAL.sub(" ", BOUND_WORDS.sub(" ", text))))


def with_prefixes(terms: Iterable[str]) -> list[str]:
    """The stems in order, that of "non-paid" as one, as "unpaid" has one."""
    joined = list[str]()
    for term in terms:
        if joined and joined[-1] == "non":
            joined[-1] += term
        else:
            joined.append(term)
    return joined


def opposites_in(said: Sequence[str], source: Sequence[str], *, known: Set[str]) -> list[Opposite]:
    """Stems of what is said that the source has only with a prefix that turns them around, or only without.

    Both as `with_prefixes` gives them. `known`: all that the source says, in its headings too. Words that
    `count_negations` counts are left out.
    """
    mine, its = frozenset(said), frozenset(source) - frozenset(said)
    found = []
    for word in sorted(mine - known):
        for prefix in _PREFIXES:
            plain = word.removeprefix(prefix)
            instead = plain if plain != word else prefix + word
            is_word = min(len(word), len(instead)) >= _LEAST_LETTERS
            if is_word and instead in its and not any(map(_NO_PAIR.match, (word, instead))):
                found.append((word, instead))
    if not found:
        return []
    near, there = _neighbours(said), _neighbours(source)
    return [Opposite(word, instead, not near[word].isdisjoint(there[instead])) for word, instead in found]


def _neighbours(words: Sequence[str]) -> dict[str, set[str]]:
    """Each word -> those right before and behind it."""
    found: dict[str, set[str]] = {word: set() for word in words}
    for one, other in pairwise(words):
        found[one].add(other)
        found[other].add(one)
    return found


def has_exception(text: str) -> bool:
    """Whether the text in lower case takes something out of what it says."""
    return _EXCEPTION.search(text) is not None


def rivals_in(said: str, source: str) -> list[tuple[str, str]]:
    """Words of what is said that the source doesn't have, each with the one that it has instead; both in lower case."""
    found = []
    groups = {int((match.lastgroup or "g0")[1:]) for match in _ANY_RIVAL.finditer(said)}
    for at in sorted(groups):
        mine = {side: match[0] for side, form in enumerate(_RIVALS[at]) if (match := form.search(said))}
        its = {side: match[0] for side, form in enumerate(_RIVALS[at]) if (match := form.search(source))}
        if mine and its and not mine.keys() & its.keys():
            found.append((next(iter(mine.values())), next(iter(its.values()))))
    return found
