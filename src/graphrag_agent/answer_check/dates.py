"""Dates in a text, in the forms of English, Russian and Chinese."""

from __future__ import annotations

import re
from dataclasses import dataclass

_MONTHS = (
    r"jan(?:uary)?|январ[ьяеюи]|янв",
    r"feb(?:ruary)?|феврал[ьяеюи]|фев",
    r"mar(?:ch)?|март[аеу]?",
    r"apr(?:il)?|апрел[ьяеюи]|апр",
    r"may|ма[йяеюи]",
    r"june?|июн[ьяеюи]",
    r"july?|июл[ьяеюи]",
    r"aug(?:ust)?|август[аеу]?|авг",
    r"sept?(?:ember)?|сентябр[ьяеюи]|сент?",
    r"oct(?:ober)?|октябр[ьяеюи]|окт",
    r"nov(?:ember)?|ноябр[ьяеюи]|ноя",
    r"dec(?:ember)?|декабр[ьяеюи]|дек",
)
_MONTH = rf"(?P<month>{'|'.join(_MONTHS)})(?![a-zа-я])\.?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th|-?го|-?е)?(?![\d:])"
_YEAR = r"(?P<year>(?:1[5-9]|20)\d\d)(?!\d)"
_SPACED_FORMS = (
    rf"{_YEAR}[-/.](?P<m>\d{{1,2}})[-/.](?P<day>\d{{1,2}})(?!\d)",
    rf"(?P<day>\d{{1,2}})\.(?P<m>\d{{1,2}})\.{_YEAR}",
    rf"(?P<either>\d{{1,2}})[-/](?P<other>\d{{1,2}})[-/]{_YEAR}",
    rf"{_DAY}[ ](?:of[ ])?{_MONTH}(?:,?[ ]{_YEAR})?",
    rf"{_MONTH}[ ]{_DAY}(?:,?[ ]{_YEAR})?",
    rf"{_MONTH},?[ ]{_YEAR}",
)
_FORMS = (
    *(re.compile(rf"(?<![\d\w.,/-]){form}") for form in _SPACED_FORMS),
    re.compile(rf"{_YEAR}[ ]?年[ ]?(?P<m>\d{{1,2}})[ ]?月(?:[ ]?(?P<day>\d{{1,2}})[ ]?[日号])?"),
    re.compile(r"(?<![\d年])(?P<m>\d{1,2})[ ]?月[ ]?(?P<day>\d{1,2})[ ]?[日号]"),
)
_HINT = re.compile(rf"\d[-/.年月]|(?<![a-zа-я])(?:{'|'.join(_MONTHS)})(?![a-zа-я])")

Ymd = tuple[int | None, int | None, int | None]


@dataclass(frozen=True, slots=True)
class Date:
    """A date as far as it is told; `readings` has two where day and month can't be told apart."""

    readings: frozenset[Ymd]
    text: str
    start: int
    end: int

    def fits(self, other: Date) -> bool:
        """Whether the other tells everything that this one tells, and nothing else."""
        return any(_fits(mine, its) for mine in self.readings for its in other.readings)

    def fits_but_for_the_year(self, other: Date) -> bool:
        """Whether the other is the same day of a year that it doesn't tell."""
        return any(its[0] is None and mine[1:] == its[1:] for mine in self.readings for its in other.readings)

    @property
    def numbers(self) -> set[float]:
        """Year, month and day as numbers."""
        return {float(part) for reading in self.readings for part in reading if part is not None}


def find_dates(text: str) -> list[Date]:
    """The dates in a text in lower case, in order; a year alone is a number."""
    if not _HINT.search(text):
        return []
    found: list[Date] = []
    taken = bytearray(len(text))  # a list of places would be looked through for each date
    for form in _FORMS:
        for match in form.finditer(text):
            readings = _readings(match.groupdict())
            start, end = match.span()
            if readings and not any(taken[start:end]):
                found.append(Date(readings, match[0].strip(), start, end))
                taken[start:end] = b"x" * (end - start)
    return sorted(found, key=lambda date: date.start)


def _readings(parts: dict[str, str | None]) -> frozenset[Ymd]:
    year = int(parts.get("year") or 0) or None
    if (either := parts.get("either")) is not None and (other := parts.get("other")) is not None:
        pairs = [(int(either), int(other)), (int(other), int(either))]
    else:
        name = parts.get("month")
        month = _month(name) if name else int(parts.get("m") or 0)
        pairs = [(month, int(parts.get("day") or 0))]
    return frozenset((year, month, day or None) for month, day in pairs if 1 <= month <= 12 and day <= 31)


def _month(name: str) -> int:
    return next(at for at, form in enumerate(_MONTHS, 1) if re.fullmatch(form, name))


def _fits(mine: Ymd, its: Ymd) -> bool:
    return all(part is None or part == other for part, other in zip(mine, its, strict=True))
