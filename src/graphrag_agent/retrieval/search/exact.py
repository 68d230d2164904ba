"""A query that is one identifier or code: whoever holds it as it stands comes first. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping

from graphrag_agent.documents import Chunk
from graphrag_agent.retrieval.search.fusion import Ranking

MAX_IDENTIFIER_CHARACTERS = 64
"""As in the tokenizer: a longer run is no name."""

_AROUND = " \t\n\"'`“”‘’«»‹›()[]{}<>?!.,;:。？！，；："
_SHAPE = re.compile(r"[\w.\-/@:+#']+")
_MARK = re.compile(r"[\d_@/+#]|\w\.\w")
_DASHES = dict.fromkeys([*range(0x2010, 0x2016), 0x2212], "-")
_JOINT = r"[-./@:'’_+#]"
_FIRST_UNSPACED = "\u0e00"
"""From here on scripts write no blanks between words, so a text without blanks says nothing."""


def find_identifier(query: str) -> str | None:
    """The identifier that the query consists of (`SKU-99/A`, `v2.1.3`, `ERR_CONN_RESET`), folded; None for others."""
    name = _folded(query).strip(_AROUND)
    if not name or len(name) > MAX_IDENTIFIER_CHARACTERS or not _SHAPE.fullmatch(name) or not _MARK.search(name):
        return None
    return name if all(sign < _FIRST_UNSPACED for sign in name) else None


def lift_exact(ranking: Ranking, chunks: Mapping[str, Chunk], identifier: str) -> tuple[list[tuple[str, float]], int]:
    """The ranking with the holders of the identifier first, and how many there are.

    Those that have it as a name of its own come before those that have it inside a longer one (`E-1042` in
    `E-1042-B`). Within each of the two the order stays. A holder's score grows by the best score of all.
    """
    best = max((score for _, score in ranking), default=0.0)
    whole = re.compile(rf"(?<!\w)(?<!\w{_JOINT}){re.escape(identifier)}(?!{_JOINT}?\w)")
    inside = re.compile(rf"(?<!\w){re.escape(identifier)}(?!\w)")
    lifted, holders = [], 0
    for name, score in ranking:
        text = _folded(chunks[name].index_text)
        held = 0 if identifier not in text or not inside.search(text) else 2 if whole.search(text) else 1
        holders += held > 0
        lifted.append((name, score + best * held))
    return sorted(lifted, key=lambda item: -item[1]), holders


def _folded(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text).casefold().translate(_DASHES)
    return "".join(sign for sign in folded if unicodedata.category(sign) != "Cf")
