"""BM25's numbers, the same for every backend, so that their scores agree."""

from __future__ import annotations

import math

K1 = 1.2
B = 0.75
AVERAGE_CHUNK_TERMS = 256
"""Length that counts as normal, the same for every index.

A real average would bake the order of ingest into stored weights, and differ between tenants and backends. The value
hardly matters: nDCG@10 on XQuAD en, de and CMRC zh moves by at most .002 between 128 and 400, and 256 is best or level.
"""


def term_weight(count: int, length: int) -> float:
    """What a term that occurs `count` times in a text of `length` terms adds to the score, before the idf."""
    return count * (K1 + 1) / (count + K1 * (1 - B + B * length / AVERAGE_CHUNK_TERMS))


def lucene_idf(texts: int, texts_with_term: int) -> float:
    """Rarity of a term; never negative, unlike Okapi's own."""
    return math.log(1 + (texts - texts_with_term + 0.5) / (texts_with_term + 0.5))
