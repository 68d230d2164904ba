"""How many tokens a text will cost a model, without any model's vocabulary."""

from __future__ import annotations

import re

UNITS_PER_TOKEN = 70
"""Fine unit of the estimate: the two weights below are whole numbers of it, so sums over pieces are exact."""

_CJK_UNITS = 56
"""A Chinese, Japanese or Korean character is about 0.8 token (measured on o200k: 420 tokens, count by 4 gives 144)."""

_OTHER_UNITS = 20
"""3.5 other characters are about one token."""

_CJK = re.compile(
    r"[\u1100-\u11ff\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]"
)


def estimate_tokens(text: str) -> int:
    """Estimated tokens of the text, rounded up; at most a third off for prose and code."""
    return -(-count_token_units(text) // UNITS_PER_TOKEN)


def count_token_units(text: str) -> int:
    """The estimate in units of 1/70 token: adds up exactly over the pieces of a text."""
    if text.isascii():
        return len(text) * _OTHER_UNITS
    cjk = len(_CJK.findall(text))
    return cjk * _CJK_UNITS + (len(text) - cjk) * _OTHER_UNITS
