"""Names, acronyms and codes of a text: words that no paraphrase replaces."""

from __future__ import annotations

import re

_CAPITALIZED = re.compile(r"(?<![\w.@/-])(?:[A-ZÀ-ÞА-ЯЁ][\w'’-]*\w|[A-ZА-ЯЁ]{2,})")
_BEGINS = re.compile(r"(?:\A|[.!?:;•\n\"“”«»„(\[*_|#>—–-])[\s\"“«„(*_]*\Z")
_CODE = re.compile(
    r"(?<![A-Za-z0-9_.,/@-])(?=[A-Za-z_./@-]*\d)(?=[\d_./@-]*[A-Za-z])[A-Za-z0-9][A-Za-z0-9_./@-]*[A-Za-z0-9]"
)
_COUNTED = re.compile(r"\d+(?:[.,]\d+)?-?(?:st|nd|rd|th|[a-z]{1,3}|[a-z]+)\Z|\d+-\w+", re.IGNORECASE)
_LATIN_WORD = re.compile(r"(?<![A-Za-z\d])[A-Za-z][A-Za-z'’.-]*[A-Za-z]")
_HAN = re.compile("[\u3400-\u9fff]")
_NO_NAME_TEXT = """
I The This That These Those It Its In On At To For From By With A An And Or But If When While As Of Yes No Not
January February March April May June July August September October November December
Monday Tuesday Wednesday Thursday Friday Saturday Sunday
"""
_NO_NAMES = frozenset(_NO_NAME_TEXT.split())
_TITLE_SHARE = 0.6
"""Of a text's words; where more of them are capitalized it is a heading, and capitals tell nothing."""


def find_names(text: str) -> list[str]:
    """The names as written, in order; a word that only begins a sentence is none."""
    if _HAN.search(text):
        return _LATIN_WORD.findall(text)
    words = re.findall(r"[^\W\d_]{2,}", text)
    is_sentence = text.rstrip("*_\"'”’») ").endswith((".", "!", "?", "…"))
    if not is_sentence and len(words) > 3 and sum(word[0].isupper() for word in words) > _TITLE_SHARE * len(words):
        return []
    found = []
    for match in _CAPITALIZED.finditer(text):
        name = match[0].removesuffix("'s").removesuffix("’s")
        begins = _BEGINS.search(text[max(match.start() - 4, 0) : match.start()]) is not None
        is_acronym = name.isupper() and len(name) > 1
        leads_on = re.match(r"[ ][A-ZА-ЯЁ]\w", text[match.end() : match.end() + 3]) is not None
        if name not in _NO_NAMES and (is_acronym or leads_on or not begins) and not any(map(str.isdigit, name)):
            found.append(name)
    return found


def find_codes(text: str) -> list[str]:
    """Identifiers of letters and digits, such as `E-1042` or `v2.1.3`; `5mg` and `10-day` are none."""
    return [match[0] for match in _CODE.finditer(text) if not _COUNTED.match(match[0])]
