"""An embedder that remembers: a text is embedded once, and with a file once for all runs."""

from __future__ import annotations

import hashlib
import sqlite3
import threading
from array import array
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType

from graphrag_agent.retrieval.embedders import Embedder

_COMMIT_EVERY = 32
"""Texts embedded between two commits: what a kill loses."""


class CachedEmbedder:
    """The embedder behind a SQLite table of its vectors, in `path` or in memory. Vectors are kept as 32-bit floats.

    A row belongs to the embedder's identity, to passages or queries, and to the text's SHA-256.
    """

    def __init__(self, embedder: Embedder, path: Path | None = None) -> None:
        self._embedder = embedder
        self._lock = threading.Lock()
        self._table = sqlite3.connect(path or ":memory:", check_same_thread=False, timeout=60)
        self._table.execute("create table if not exists vectors (name text primary key, vector blob) without rowid")
        self._table.commit()

    @property
    def identity(self) -> str:
        return self._embedder.identity

    async def embed_passages(self, texts: Sequence[str]) -> list[list[float]]:
        names = [self._name("passage", text) for text in texts]
        known = self._read(names)
        fresh = {name: text for name, text in zip(names, texts, strict=True) if name not in known}
        for start in range(0, len(fresh), _COMMIT_EVERY):
            part = list(fresh)[start : start + _COMMIT_EVERY]
            vectors = await self._embedder.embed_passages([fresh[name] for name in part])
            known |= self._write(dict(zip(part, vectors, strict=True)))
        return [known[name] for name in names]

    async def embed_query(self, text: str) -> list[float]:
        name = self._name("query", text)
        known = self._read([name]) or self._write({name: await self._embedder.embed_query(text)})
        return known[name]

    def close(self) -> None:
        """Give the file back."""
        self._table.close()

    def __enter__(self) -> CachedEmbedder:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _name(self, role: str, text: str) -> str:
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        return f"{self.identity}/{role}/{digest}"

    def _read(self, names: Iterable[str]) -> dict[str, list[float]]:
        known = {}
        with self._lock:
            for name in names:
                row = self._table.execute("select vector from vectors where name = ?", [name]).fetchone()
                if row:
                    known[name] = array("f", row[0]).tolist()
        return known

    def _write(self, vectors: dict[str, list[float]]) -> dict[str, list[float]]:
        rows = [(name, array("f", vector).tobytes()) for name, vector in vectors.items()]
        with self._lock, self._table:
            self._table.executemany("insert or replace into vectors values (?, ?)", rows)
        return self._read(vectors)
