"""Names that SQL takes without quotes, made from the names of files, sheets and columns."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from pathlib import PurePosixPath

MAX_NAME_CHARACTERS = 48
_RESERVED_WORDS = """
all analyse analyze and any array as asc asymmetric both case cast check collate column constraint create default
deferrable desc describe distinct do else end except false fetch for foreign from group having in initially intersect
into lambda lateral leading limit not null offset on only or order pivot pivot_longer pivot_wider placing primary
qualify references returning select show some summarize symmetric table then to trailing true union unique unpivot
using variadic when where window with
"""
RESERVED = frozenset(_RESERVED_WORDS.split())
"""Words that DuckDB takes as a name only in quotes; a test compares them with its own list."""
SHEET_SEPARATOR = "__"
_NO_WORD = re.compile(r"[\W_]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def sql_name(text: str, default: str) -> str:
    """Lower case, words joined by "_", letters of any script kept; `default` where no letter or digit is left."""
    plain = unicodedata.normalize("NFKC", text).replace("%", " percent ").replace("#", " number ")
    name = _NO_WORD.sub("_", _CAMEL.sub("_", plain)).strip("_").casefold()[:MAX_NAME_CHARACTERS].strip("_")
    if not name:
        return default
    return f"_{name}" if not name[0].isalpha() else f"{name}_" if name in RESERVED else name


def unique_names(texts: Iterable[str], default: str) -> list[str]:
    """`sql_name` of each, a number behind those that are taken."""
    names: list[str] = []
    taken: set[str] = set()
    for text in texts:
        first = name = sql_name(text, default)
        number = 1
        while name in taken:
            number += 1
            name = f"{first.rstrip('_')}_{number}"
        taken.add(name)
        names.append(name)
    return names


def file_names(sources: Iterable[str]) -> list[str]:
    """A name for each file by its path: the file's name without suffix."""
    return unique_names((PurePosixPath(source).stem for source in sources), "data")
