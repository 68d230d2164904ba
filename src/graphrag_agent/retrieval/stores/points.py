"""What the Qdrant engine stores of a chunk, the same in a folder and on a server."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import NamedTuple
from zlib import crc32

from graphrag_agent.retrieval.stores.port import QueryTerms, Terms
from graphrag_agent.retrieval.stores.term_weights import term_weight

SPARSE = "bm25"
"""Name of the sparse vector."""
_ID_NAMESPACE = uuid.UUID("6f2f0f62-5a0d-4a5e-9c0d-2f0c2a6c7b11")


class SparseTerms(NamedTuple):
    """Terms as a sparse vector."""

    indices: list[int]
    values: list[float]


def point_id(name: str) -> str:
    """The point of a chunk's or document's id: the engine takes UUIDs only."""
    return str(uuid.uuid5(_ID_NAMESPACE, name))


def passage_terms(terms: Terms) -> SparseTerms:
    """What is stored: each term with its BM25 weight before the idf, which the engine multiplies in."""
    length = sum(terms.values())
    return _sparse({term: term_weight(count, length) for term, count in terms.items()})


def query_terms(terms: QueryTerms) -> SparseTerms:
    """What is asked: each term with its weight in the query."""
    return _sparse({term: float(weight) for term, weight in terms.items()})


def _sparse(weights: Mapping[str, float]) -> SparseTerms:
    """Terms are named by their CRC-32; two terms of a text with the same one are added up."""
    values: dict[int, float] = {}
    for term, weight in weights.items():
        name = crc32(term.encode())
        values[name] = values.get(name, 0.0) + weight
    return SparseTerms(list(values), list(values.values()))
