"""Numbers in a text with their units and bounds, however they are written."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from graphrag_agent.answer_check.number_words import find_number_words
from graphrag_agent.answer_check.units import CURRENCY_SIGNS, UNIT_BEHIND, UNITS

Bound = Literal["", "max", "min"]

_NUMBER = re.compile(
    r"(?<![a-zа-я\d_.,])(?P<sign>-(?=\d))?"
    r"(?P<digits>\d{1,3}(?:[ ,.'’]\d{3}){1,4}(?!\d)(?:[.,]\d{1,9})?|\d{1,15}(?!\d)(?:[.,]\d{1,9})?)"
    r"(?:(?:st|nd|rd|th|-?го|-?й|-?я|-?е|-?х|-?ти|-?ми)(?![a-zа-я]))?"
    r"(?P<scale>[ ]?(?:thousand|million|billion|тысяч[аи]?|тыс\.?|миллион(?:а|ов)?|млн\.?|миллиард(?:а|ов)?|млрд\.?"
    r"|万|亿|千(?!克|米)|k)(?![a-zа-я]))?"
)
_HALF = re.compile(r"1⁄2|(?<![\w/])1/2(?![\w/])")
_CLOCK = re.compile(r"(?<![\d:])(\d{1,2})(?:[:.](\d{2}))?[ ]?([ap])\.?m\b\.?|(?<![\d:])(\d{1,2}):(\d{2})(?![\d:])")
_SCALES = {
    "thousand": 1e3,
    "k": 1e3,
    "тыс": 1e3,
    "million": 1e6,
    "млн": 1e6,
    "billion": 1e9,
    "миллиард": 1e9,
    "миллион": 1e6,
    "млрд": 1e9,
    "千": 1e3,
    "万": 1e4,
    "亿": 1e8,
}
"""Longer names before those that they begin with."""
_JOINED = re.compile(r"\s*(?:-|~|to|or|and|до|и|или|至|到|或)\s*\Z")
_AT_MOST = (
    r"no(?:t)? (?:more|later|longer|greater|higher) than|(?:must|may|can|shall|should|do|does) not exceed|at most|"
    r"up to|maximum(?: of)?|within|"
    r"less than|fewer than|under|below|не (?:более|больше|позднее|позже|превыша\w+)(?: чем)?|максимум|менее(?: чем)?|"
    r"меньше|до|不超过|不得超过|至多|最多|不到|不足|少于|低于"
)
_AT_LEAST = (
    r"no(?:t)? (?:less|fewer|earlier|sooner|lower) than|at least|minimum(?: of)?|more than|over|above|exceed(?:s|ing)?|"
    r"не (?:менее|меньше|ранее|раньше)(?: чем)?|минимум|по крайней мере|более(?: чем)?|больше|свыше|от|"
    r"不少于|不得少于|不低于|至少|最少|超过|多于|高于"
)
BOUND_WORDS = re.compile(rf"(?<![a-zа-я])(?:(?P<max>{_AT_MOST})|(?P<min>{_AT_LEAST}))(?![a-zа-я])")
_BOUND_BEFORE = re.compile(rf"{BOUND_WORDS.pattern}[^.;,。；，]{{0,12}}\Z")
_BOUND_BEHIND = re.compile(r"[^\s.;,。；，]{0,3}(?:(?P<max>以内|以下|or less|or fewer)|(?P<min>以上|or more))")
_REACH = 36
"""Characters before a number in which a word may bound it."""
_NEAR = 9
"""Characters before a number in which the sign of its currency stands."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number and what it counts."""

    values: frozenset[float]
    """More than one where the writing allows: `5.000` is five thousand, or five."""
    unit: str
    """Name in UNITS; empty where none is told."""
    text: str
    start: int
    end: int
    bound: Bound = ""
    is_word: bool = False

    @property
    def dimension(self) -> str:
        """Of the unit; empty where there is none."""
        return UNITS[self.unit][0] if self.unit else ""

    def equals(self, other: Quantity) -> bool:
        """Same number, and same unit where both tell one."""
        if not (self.unit and other.unit):
            return any(map(_close_to(other.values), self.values))
        (mine, factor), (its, other_factor) = UNITS[self.unit], UNITS[other.unit]
        scaled = [value * other_factor for value in other.values]
        return mine == its and any(map(_close_to(scaled), (value * factor for value in self.values)))

    def has_value_of(self, other: Quantity) -> bool:
        """Same number, whatever the units."""
        return any(map(_close_to(other.values), self.values))


def find_quantities(text: str) -> list[Quantity]:
    """The numbers of a text in lower case, in order, words for numbers too."""
    found = [*_clocks(text)]
    taken = bytearray(len(text))  # a list of places would be looked through for each number
    for item in found:
        taken[item.start : item.end] = b"x" * (item.end - item.start)
    for start, end, values, is_word in _numbers(text):
        if not any(taken[start:end]):
            found.append(_with_unit(text, start, end, values, is_word))
            taken[start:end] = b"x" * (end - start)
    return _joined(text, sorted(found, key=lambda item: item.start))


def _close_to(values: Iterable[float]) -> Callable[[float], bool]:
    return lambda value: any(math.isclose(value, other, rel_tol=1e-6, abs_tol=1e-12) for other in values)


def _clocks(text: str) -> Iterator[Quantity]:
    for match in _CLOCK.finditer(text):
        hour, minute = int(match[1] or match[4]), int(match[2] or match[5] or 0)
        if match[3]:
            hour = hour % 12 + (12 if match[3] == "p" else 0)
        yield Quantity(frozenset({hour + minute / 100 + 1_000_000}), "", match[0], match.start(), match.end())


def _numbers(text: str) -> Iterator[tuple[int, int, frozenset[float], bool]]:
    for match in _HALF.finditer(text):
        yield match.start(), match.end(), frozenset({0.5}), False
    for match in _NUMBER.finditer(text):
        scale = (match["scale"] or "").strip(" .")
        factor = next((value for name, value in _SCALES.items() if scale.startswith(name)), 1.0) if scale else 1.0
        sign = -1.0 if match["sign"] and (match.start() == 0 or text[match.start() - 1] in " (") else 1.0
        values = frozenset(sign * factor * value for value in _readings(match["digits"]))
        yield match.start(), match.end(), values, False
    for start, end, value in find_number_words(text):
        yield start, end, frozenset({float(value)}), True


def _readings(digits: str) -> set[float]:
    """The numbers that the digits may mean: `5,000` is five thousand, `5.000` may be five, `3,5` is 3.5."""
    plain = re.sub(r"[ '’]", "", digits)
    signs = re.findall(r"[.,]", plain)
    if not signs:
        return {float(plain)}
    last = signs[-1]
    head, _, tail = plain.rpartition(last)
    whole = re.sub(r"[.,]", "", head)
    as_decimal = float(f"{whole}.{tail}")
    if len(tail) != 3 or len(set(signs)) > 1:
        return {as_decimal}
    as_grouped = float(whole + tail)
    if len(signs) > 1 or last == "," or whole == "0":
        return {as_decimal} if whole == "0" else {as_grouped}
    return {as_grouped, as_decimal}


def _with_unit(text: str, start: int, end: int, values: frozenset[float], is_word: bool) -> Quantity:
    behind = UNIT_BEHIND.match(text, end)
    unit = behind["unit"] if behind else ""
    if not unit and start and (sign := text[max(start - _NEAR, 0) : start].rstrip()[-1:]) and sign in CURRENCY_SIGNS:
        unit = sign
    if text[max(start - 3, 0) : start] == "百分之" or unit == "per cent":
        unit = "%"
    elif unit and UNITS[unit] in (("months", 12.0), ("mass", 1.0)) and all(1500 <= value <= 2100 for value in values):
        unit = ""  # a year, not so many of them
    last = behind.end() if behind else end
    return Quantity(values, unit, text[start:last].strip(), start, last, _bound(text, start, last), is_word)


def _bound(text: str, start: int, end: int) -> Bound:
    behind = _BOUND_BEHIND.match(text, end)
    found = behind or _BOUND_BEFORE.search(text[max(start - _REACH, 0) : start])
    if found is None:
        return ""
    return "max" if found["max"] else "min"


def _joined(text: str, found: list[Quantity]) -> list[Quantity]:
    """`5-10 days`: the first number has the unit of the second."""
    for at in range(len(found) - 2, -1, -1):
        one, following = found[at], found[at + 1]
        if not one.unit and following.unit and _JOINED.match(text[one.end : following.start]):
            found[at] = replace(one, unit=following.unit)
    return found
