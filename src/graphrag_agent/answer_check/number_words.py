"""Numbers that are written as words, in English, Russian and Chinese."""

from __future__ import annotations

import re
from collections.abc import Iterator

_ENGLISH_TEXT = """
two 2 three 3 four 4 five 5 six 6 seven 7 eight 8 nine 9 ten 10 eleven 11 twelve 12 thirteen 13 fourteen 14 fifteen 15
sixteen 16 seventeen 17 eighteen 18 nineteen 19 twenty 20 thirty 30 forty 40 fifty 50 sixty 60 seventy 70 eighty 80
ninety 90
"""
_RUSSIAN_TEXT = """
два 2 две 2 двух 2 двум 2 двумя 2 три 3 трех 3 трем 3 четыре 4 четырех 4 пять 5 пяти 5 шесть 6 шести 6 семь 7 семи 7
восемь 8 восьми 8 девять 9 девяти 9 десять 10 десяти 10 одиннадцать 11 одиннадцати 11 двенадцать 12 двенадцати 12
тринадцать 13 тринадцати 13 четырнадцать 14 четырнадцати 14 пятнадцать 15 пятнадцати 15 шестнадцать 16 шестнадцати 16
семнадцать 17 семнадцати 17 восемнадцать 18 восемнадцати 18 девятнадцать 19 девятнадцати 19 двадцать 20 двадцати 20
тридцать 30 тридцати 30 сорок 40 сорока 40 пятьдесят 50 пятидесяти 50 шестьдесят 60 шестидесяти 60 семьдесят 70
семидесяти 70 восемьдесят 80 восьмидесяти 80 девяносто 90 девяноста 90 сто 100 ста 100 двести 200 двухсот 200 триста 300
трехсот 300 пятьсот 500 пятисот 500
"""
_ONES = {"one": 1, "один": 1, "одна": 1, "одного": 1, "одной": 1, "a": 1}
_WORDS = {
    name: int(value)
    for text in (_ENGLISH_TEXT, _RUSSIAN_TEXT)
    for name, value in zip(text.split()[::2], text.split()[1::2], strict=True)
}
_SCALES = {"hundred": 100, "thousand": 1_000, "million": 10**6, "billion": 10**9, "тысяч": 1_000, "тысячи": 1_000} | {
    "тысяча": 1_000,
    "миллион": 10**6,
    "миллиона": 10**6,
    "миллионов": 10**6,
    "миллиард": 10**9,
    "миллиарда": 10**9,
    "миллиардов": 10**9,
}
_ANY = "|".join(sorted({*_WORDS, *_SCALES, *_ONES}, key=len, reverse=True))
_SPELLED = re.compile(rf"(?<![\w-])(?:{_ANY})(?:(?:[ -]|[ ]and[ ])(?:{_ANY})){{0,9}}(?!\w)")
_WORD = re.compile(r"[a-zа-я]+")

_HAN_DIGITS = {sign: at for at, sign in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_HAN_SCALES = {"十": 10, "百": 100, "千": 1_000, "万": 10_000, "亿": 10**8}
_HAN_NUMBER = re.compile(
    r"(?<=百分之)[零〇一二三四五六七八九十百]+|[零〇一二三四五六七八九十百千万亿两]{1,12}(?=个|名|人|位|次|天|日|周|月|年|元|小时|分钟|秒|岁|条|项|倍|公|千克|克|米|台|份|种|家|所|吨|升)"
)


def find_number_words(text: str) -> Iterator[tuple[int, int, int]]:
    """Start, end and value of each number in words; a lone "one" is none, it is mostly a pronoun."""
    for match in _SPELLED.finditer(text):
        words = [word for word in _WORD.findall(match[0]) if word != "and"]
        if any(word in _WORDS for word in words) or (words[0] in _ONES and any(word in _SCALES for word in words)):
            yield match.start(), match.end(), _value(words)
    for match in _HAN_NUMBER.finditer(text):
        if (value := _han_value(match[0])) > 1:
            yield match.start(), match.end(), value


def _value(words: list[str]) -> int:
    if words[0] == "a" and words[1] not in _SCALES:
        words = words[1:]
    total, current = 0, 0
    for word in words:
        if word not in _SCALES:
            current += _WORDS.get(word, _ONES.get(word, 0))
        elif _SCALES[word] == 100:
            current = max(current, 1) * 100
        else:
            total, current = total + max(current, 1) * _SCALES[word], 0
    return total + current


def _han_value(text: str) -> int:
    if all(sign in _HAN_DIGITS for sign in text):
        return int("".join(str(_HAN_DIGITS[sign]) for sign in text))
    total = section = digit = 0
    for sign in text:
        if sign in _HAN_DIGITS:
            digit = _HAN_DIGITS[sign]
        elif _HAN_SCALES[sign] < 10_000:
            section += max(digit, 1) * _HAN_SCALES[sign]
            digit = 0
        else:
            total = (total + section + digit) * _HAN_SCALES[sign]
            section = digit = 0
    return total + section + digit
