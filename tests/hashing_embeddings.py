"""A tiny deterministic embedder for tests: words hashed into a few dimensions, calls counted."""

from __future__ import annotations

from zlib import crc32

from langchain_core.embeddings import Embeddings

DIMENSIONS = 64


class HashingEmbeddings(Embeddings):
    """Texts that share words point the same way. `passages` lists what was embedded."""

    def __init__(self, model: str = "hashing") -> None:
        self.model = model
        self.passages: list[str] = []
        self.queries: list[str] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.passages += texts
        return [_vector(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        self.queries.append(text)
        return _vector(text)


def _vector(text: str) -> list[float]:
    vector = [0.0] * DIMENSIONS
    for word in text.casefold().split():
        vector[crc32(word.encode()) % DIMENSIONS] += 1.0
    return vector
