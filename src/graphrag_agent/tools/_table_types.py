"""What the cells of a column are: numbers, dates, truth values or text. Pure; `infer_types` is the entry.

A column is converted as a whole or not at all, and never by a guess: where cells can be read in two ways they stay
text, and a note says so.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import NamedTuple

from graphrag_agent.tools._table_answer import cut

TEXT = "VARCHAR"
_CELL_ERRORS = ("#n/a", "#div/0!", "#name?", "#null!", "#num!", "#ref!", "#value!", "#getting_data")
MISSING = frozenset({"-", "–", "—", "na", "n/a", "n.a.", "null", "nan", *_CELL_ERRORS})
"""Cells that stand for nothing in a column of numbers or dates, in lower case: marks, and what a spreadsheet shows
for a formula that failed."""
MAX_EXACT_DIGITS = 18
"""Decimals up to here are exact; sums of them still fit into DuckDB's 38 digits."""
MAX_EXACT_DECIMALS = 9
"""Behind the point. What has more was measured or worked out, and DuckDB refuses products of such decimals: 100 times
a DECIMAL(18,17) is more than the 64 bits that it reckons with."""

Cells = Sequence[str]


class TypedColumn(NamedTuple):
    """A column's SQL type, its cells as text that casts to it (None: NULL), and what a reader must know."""

    sql_type: str
    cells: list[str | None]
    note: str = ""


class _Read(NamedTuple):
    """Each distinct cell and its text in the column's type."""

    sql_type: str
    texts: Mapping[str, str]
    note: str = ""


_Reader = Callable[[Cells], _Read | None]

_SPACES = " \u00a0\u2009\u202f"
_GROUPS = r"[1-9]\d{0,2}(?:[%s]\d{3})+"
_BESIDE_POINT, _BESIDE_COMMA = _GROUPS % f",'’{_SPACES}", _GROUPS % f".{_SPACES}"
_POINT = re.compile(rf"(?:\d+|{_BESIDE_POINT})(?:\.\d*)?|\.\d+", re.ASCII)
"""1234.5, 1,234.5, 1 234.5, 1'234.5"""
_COMMA = re.compile(rf"(?:\d+|{_GROUPS % f'.{_SPACES}'})(?:,\d+)?", re.ASCII)
"""1234,5, 1.234,5, 1 234,5"""
_WHOLE = re.compile(r"-?(?:0|[1-9]\d{0,17})", re.ASCII)
_USUAL = re.compile(r"-?(?:0|[1-9]\d{0,17})(?:\.\d+)?", re.ASCII)
_FORMS = {".": _POINT, ",": _COMMA}
_AMOUNT = re.compile(
    r"(?P<open>\()?(?P<sign>[-+\u2212]?)\s?(?P<before>[$€£¥₽₸₹])?\s?"
    rf"(?P<body>[\d.,'\u2019{_SPACES}]*\d\.?)"
    r"(?P<power>[eE][-+]?\d{1,3})?\s?(?P<after>%|[$€£¥₽₸₹])?(?P<close>\))?",
    re.ASCII,
)
_DIGITS_AND_POINT = {
    mark: str.maketrans({sign: "." if sign == mark else None for sign in f".,'\u2019{_SPACES}"}) for mark in _FORMS
}
"""What makes a plain number of an amount's body, by its decimal sign."""
_LEADING_ZERO = re.compile(r"0\d+", re.ASCII)
_ISO = re.compile(r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?)\s?(Z|[-+]\d\d(?::?\d\d)?)?)?", re.ASCII)
_NUMERIC_DATE = re.compile(r"(\d{1,2})([/.-])(\d{1,2})\2(\d{4})", re.ASCII)
_YEAR_FIRST = re.compile(r"(\d{4})([/.])(\d{1,2})\2(\d{1,2})", re.ASCII)
_WORDED = (
    re.compile(r"(?P<month>[A-Za-z]{3,9})\.? (?P<day>\d{1,2}),? (?P<year>\d{4})", re.ASCII),
    re.compile(r"(?P<day>\d{1,2})[ -](?P<month>[A-Za-z]{3,9})\.?,?[ -](?P<year>\d{4})", re.ASCII),
)
_MONTH_NAMES = "january february march april may june july august september october november december"
_MONTHS = _MONTH_NAMES.split()
_TRUTH = frozenset({"true", "false"})


def infer_types(
    columns: Sequence[Cells], *, texts: Container[int] = (), is_comma_likely: bool = False
) -> list[TypedColumn]:
    """Each column with its type; cells are trimmed texts, "" for none.

    `texts`: columns that the file says are text, which can be ISO dates but no numbers. `is_comma_likely`: fields are
    not separated by commas, as programs do where the comma is a decimal sign. Then 1,234 is a number only if another
    column shows which sign it is; else it is one unless another column has a decimal comma.
    """
    numbers = [_present(cells) for at, cells in enumerate(columns) if at not in texts]
    marks = {mark for present in numbers for mark in _decimal_signs(present)} | (set() if is_comma_likely else {"."})
    sign = marks.pop() if len(marks) == 1 else ""
    return [_typed(cells, (_iso_times,) if at in texts else _readers(sign)) for at, cells in enumerate(columns)]


def _readers(sign: str) -> tuple[_Reader, ...]:
    return _truth_values, lambda present: _numbers(present, sign), _iso_times, _dates


def _present(cells: Iterable[str]) -> list[str]:
    return [cell for cell in dict.fromkeys(cells) if cell and cell.casefold() not in MISSING]


def _typed(cells: Cells, readers: Iterable[_Reader]) -> TypedColumn:
    present = _present(cells)
    found = next(filter(None, (read(present) for read in readers)), None) if present else None
    if found and found.sql_type != TEXT:
        texts = [found.texts.get(cell) for cell in cells]
        return TypedColumn(found.sql_type, texts, _with_missing(found, cells))
    return TypedColumn(TEXT, [cell or None for cell in cells], found.note if found else _mixture(present))


def _with_missing(found: _Read, cells: Cells) -> str:
    marks = [cell for cell in dict.fromkeys(cells) if cell and cell not in found.texts]
    told = f"{', '.join(map(repr, marks[:3]))} {'is' if len(marks) == 1 else 'are'} NULL" if marks else ""
    return "; ".join(filter(None, (found.note, told)))


def _mixture(present: Cells) -> str:
    """For text with numbers in it, so that a query can cast those."""
    numbers = [cell for cell in present if _POINT.fullmatch(cell) and not _LEADING_ZERO.match(cell)]
    known = set(numbers)
    others = [cell for cell in present if cell not in known][:3]
    if not others or len(numbers) <= len(present) / 2:
        return ""
    bare = " without its ','" if any("," in cell for cell in numbers) else ""
    return f"mostly numbers, so TRY_CAST it{bare}; others are {', '.join(cut(repr(cell), 30) for cell in others)}"


def _truth_values(present: Cells) -> _Read | None:
    if not all(cell.casefold() in _TRUTH for cell in present):
        return None
    return _Read("BOOLEAN", {cell: cell.casefold() for cell in present})


class _Amount(NamedTuple):
    body: str
    is_negative: bool
    power: str
    unit: str


def _amount(cell: str) -> _Amount | None:
    found = _AMOUNT.fullmatch(cell)
    if not found or bool(found["open"]) != bool(found["close"]) or (found["before"] and found["after"]):
        return None
    is_negative = bool(found["open"]) or found["sign"] in ("-", "\u2212")
    return _Amount(found["body"], is_negative, found["power"] or "", found["before"] or found["after"] or "")


def _are_amounts(present: Cells) -> bool:
    """Whether they look so: soon told, where a million are taken apart in vain if the last one is a word."""
    return all(map(_AMOUNT.fullmatch, present))


def _decimal_signs(present: Cells) -> set[str]:
    """What the column's numbers prove to be the decimal sign: ".", "," or nothing."""
    if all(map(_USUAL.fullmatch, present)):  # most columns, and much faster
        return set() if all(_COMMA.fullmatch(cell.lstrip("-")) for cell in present) else {"."}
    if not _are_amounts(present):
        return set()
    fits = set(_FORMS)
    for cell in present:
        amount = _amount(cell)
        fits = {sign for sign in fits if amount and _FORMS[sign].fullmatch(amount.body)}
        if not fits:
            return set()
    return fits if len(fits) == 1 else set()


def _numbers(present: Cells, sign: str) -> _Read | None:
    if all(map((_USUAL if sign == "." else _WHOLE).fullmatch, present)):  # most columns, and much faster
        return _Read(_number_type(present), dict(zip(present, present, strict=True)))
    if not _are_amounts(present):
        return None
    unit: str | None = None
    fits = {".", ","}
    is_open = False
    for cell in present:  # in two passes, as a million amounts are too much to keep
        amount = _amount(cell)
        if amount is None or _LEADING_ZERO.match(amount.body) or unit not in (None, amount.unit):  # 007 is a name
            return None
        unit = amount.unit
        fits = {mark for mark in fits if _FORMS[mark].fullmatch(amount.body)}
        if not fits:
            return None
        is_open = is_open or "." in amount.body or "," in amount.body
    if len(fits) == 2 and is_open and not sign:
        return _Read(TEXT, {}, "numbers, but '.' or ',' may part decimals or thousands, so they stay text")
    mark = sign if len(fits) == 2 and is_open else min(fits, key=".,".index)
    texts = {cell: _plain(amount, mark) for cell in present if (amount := _amount(cell))}
    sql_type = _number_type(texts.values())
    note = {"": "", "%": "in percent"}.get(unit or "", f"in {unit}")
    if bracketed := next((cell for cell in present if cell.startswith("(")), None):
        note = "; ".join(filter(None, (note, f"{bracketed} is {texts[bracketed]}")))  # to some it is a label
    return _Read(sql_type, texts, note) if sql_type != TEXT else None


def _plain(amount: _Amount, mark: str) -> str:
    digits = amount.body.translate(_DIGITS_AND_POINT[mark])
    return ("-" if amount.is_negative else "") + digits.rstrip(".") + amount.power


def _number_type(texts: Iterable[str]) -> str:
    texts = list(texts)
    if any("e" in text or "E" in text for text in texts):
        return _approximate(texts)
    sizes = {(len(before), len(after)) for before, _, after in (text.lstrip("-").partition(".") for text in texts)}
    whole, scale = max(size[0] for size in sizes), max(size[1] for size in sizes)
    if not scale:
        return "BIGINT" if whole <= MAX_EXACT_DIGITS else "HUGEINT" if whole < 38 else TEXT
    is_exact = whole + scale <= MAX_EXACT_DIGITS and scale <= MAX_EXACT_DECIMALS
    return f"DECIMAL({whole + scale},{scale})" if is_exact else _approximate(texts)


def _approximate(texts: Iterable[str]) -> str:
    return "DOUBLE" if all(math.isfinite(float(text)) for text in texts) else TEXT


def _iso_times(present: Cells) -> _Read | None:
    times: dict[str, datetime] = {}
    zoned = 0
    for cell in present:
        found = _ISO.fullmatch(cell)
        if not found:
            return None
        day, clock, zone = found.groups()
        try:
            time = datetime.fromisoformat(f"{day}T{clock or '00:00'}{zone or ''}")
            times[cell] = time.astimezone(UTC).replace(tzinfo=None) if zone else time
        except (ValueError, OverflowError):
            return None
        zoned += zone is not None
    if zoned not in (0, len(times)):
        return None
    if not any(time.time().isoformat() != "00:00:00" for time in times.values()) and not zoned:
        return _Read("DATE", {cell: time.date().isoformat() for cell, time in times.items()})
    return _Read("TIMESTAMP", {cell: str(time) for cell, time in times.items()}, "in UTC" if zoned else "")


def _dates(present: Cells) -> _Read | None:
    if all(map(_NUMERIC_DATE.fullmatch, present)):
        return _numeric_dates(present, [found for cell in present if (found := _NUMERIC_DATE.fullmatch(cell))])
    texts: dict[str, str] = {}
    for cell in present:
        if not (text := _worded(cell)):
            return None
        texts[cell] = text
    return _Read("DATE", texts)


def _numeric_dates(present: Cells, found: Sequence[re.Match[str]]) -> _Read | None:
    firsts, seconds = [int(date_[1]) for date_ in found], [int(date_[3]) for date_ in found]
    with_dots = all(date_[2] == "." for date_ in found)  # nobody writes the month first with dots
    is_day_first = max(firsts) > 12 or with_dots
    if is_day_first and max(seconds) > 12:
        return None
    if not is_day_first and max(seconds) <= 12:
        if firsts == seconds:
            is_day_first = True
        else:
            return _Read(TEXT, {}, "dates, but day or month may come first, so they stay text")
    days, months = (firsts, seconds) if is_day_first else (seconds, firsts)
    texts = {
        cell: _iso(int(date_[4]), month, day)
        for cell, date_, day, month in zip(present, found, days, months, strict=True)
    }
    note = "written with the day first" if is_day_first else "written with the month first"
    return _Read("DATE", texts, note) if all(texts.values()) else None


def _worded(cell: str) -> str:
    if year_first := _YEAR_FIRST.fullmatch(cell):
        return _iso(int(year_first[1]), int(year_first[3]), int(year_first[4]))
    found = next(filter(None, (form.fullmatch(cell) for form in _WORDED)), None)
    if not found:
        return ""
    word = found["month"].casefold()
    words = [name for name in _MONTHS if word in (name, name[:3], "sept" if name == "september" else name)]
    return _iso(int(found["year"]), _MONTHS.index(words[0]) + 1, int(found["day"])) if words else ""


def _iso(year: int, month: int, day: int) -> str:
    try:
        return date(year, month, day).isoformat()
    except ValueError:
        return ""
