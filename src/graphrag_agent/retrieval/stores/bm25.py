"""BM25 in memory: rank-bm25's Okapi with the Lucene idf, scored through postings, growing and shrinking in place.

Weights and idf are those of `term_weights`, which every backend uses, so scores agree between them.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any

import numpy as np
from rank_bm25 import BM25Okapi

from graphrag_agent.retrieval.stores.term_weights import AVERAGE_CHUNK_TERMS, K1, B, lucene_idf, term_weight

_COMPACT_ABOVE = 0.5
"""Share of removed texts above which the postings are rebuilt."""


class BM25Index(BM25Okapi):  # type: ignore[misc]  # rank-bm25 has no types
    """Texts under keys, each with a label that decides who may find it. Not thread-safe."""

    def __init__(self) -> None:
        self._keys: list[str] = []
        self._present = bytearray()
        self._slots: dict[str, int] = {}
        self._labels: dict[Hashable, int] = {}
        self._label_of = array("q")
        self._postings: dict[str, tuple[Any, Any]] = {}
        self._document_frequency: dict[str, int] = {}
        super().__init__([], k1=K1, b=B)

    def __len__(self) -> int:
        return len(self._slots)

    def add(self, key: str, terms: Mapping[str, int], label: Hashable = None) -> None:
        """Insert the text, or replace the one that has the key."""
        self.remove(key)
        slot = len(self._keys)
        self._keys.append(key)
        self._present.append(True)
        self._slots[key] = slot
        self._label_of.append(self._labels.setdefault(label, len(self._labels)))
        self.doc_freqs.append(dict(terms))
        self.doc_len.append(sum(terms.values()))
        self.corpus_size += 1
        for term, count in terms.items():
            slots, weights = self._postings.setdefault(term, (array("q"), array("d")))
            slots.append(slot)
            weights.append(term_weight(count, self.doc_len[slot]))
            self._document_frequency[term] = self._document_frequency.get(term, 0) + 1

    def remove(self, key: str) -> None:
        """Take the text out; an unknown key is ignored."""
        slot = self._slots.pop(key, None)
        if slot is None:
            return
        for term in self.doc_freqs[slot]:
            self._document_frequency[term] -= 1
        self._present[slot] = False
        self.doc_freqs[slot] = {}
        if len(self._slots) < _COMPACT_ABOVE * len(self._keys):
            self._compact()

    def search(
        self, terms: Mapping[str, float], limit: int, allows: Callable[[Hashable], bool] = lambda label: True
    ) -> list[tuple[str, float]]:
        """Key and score, best first, of the texts with any of the terms and a label that is allowed."""
        scores = np.zeros(len(self._keys))
        for term, weight in terms.items():
            frequency = self._document_frequency.get(term, 0)
            if frequency:
                slots, weights = self._postings[term]
                scores[np.array(slots)] += weight * lucene_idf(len(self), frequency) * np.array(weights)
        found = np.flatnonzero(scores)
        found = found[self._candidates(allows)[found]]
        if len(found) > limit:
            cut = np.partition(scores[found], len(found) - limit)[len(found) - limit]
            found = found[scores[found] >= cut]
        ranked = sorted(((self._keys[slot], float(scores[slot])) for slot in found), key=_best_first)
        return ranked[:limit]

    def get_scores(self, query: Iterable[str]) -> Any:
        """rank-bm25's own slow scoring of every slot, removed ones too: the reference that `search` is tested with."""
        self._calc_idf(self._document_frequency)
        return super().get_scores(query)

    def _initialize(self, corpus: list[list[str]]) -> dict[str, int]:
        self.avgdl = AVERAGE_CHUNK_TERMS
        return self._document_frequency

    def _calc_idf(self, nd: Mapping[str, int]) -> None:
        self.idf = {term: lucene_idf(len(self), frequency) for term, frequency in nd.items() if frequency}

    def _candidates(self, allows: Callable[[Hashable], bool]) -> Any:
        allowed = np.array([allows(label) for label in self._labels], dtype=bool)
        present = np.array(self._present, dtype=bool)
        return present & allowed[np.array(self._label_of)] if len(present) else present

    def _compact(self) -> None:
        names = list(self._labels)
        kept = [(key, self.doc_freqs[slot], names[self._label_of[slot]]) for key, slot in self._slots.items()]
        self.__init__()  # type: ignore[misc]
        for key, terms, label in kept:
            self.add(key, terms, label)


def _best_first(hit: tuple[str, float]) -> tuple[float, str]:
    return -hit[1], hit[0]
