"""Documents ranked by what they are called: title, source, file name, and what their metadata says."""

from __future__ import annotations

import asyncio
import re
import time
from collections import OrderedDict, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import NamedTuple

from graphrag_agent.documents import Document
from graphrag_agent.retrieval.function_words import weigh_terms
from graphrag_agent.retrieval.scope import Scope
from graphrag_agent.retrieval.stores.term_weights import lucene_idf, term_weight
from graphrag_agent.retrieval.tokenizer import count_terms
from graphrag_agent.tools._library import Library, is_called, lock_of_listing

KEPT_SECONDS = 300.0
"""How long a list of names is used without a look at the store. What is found is read from the store all the same."""

KEPT_SCOPES, KEPT_DOCUMENTS = 64, 40_000
"""Lists of names that are kept, and documents in all of them together, about a kilobyte each."""

_NEXT_BEST = 0.4
"""Share of the best score that a further name must reach: one common word of several is no match."""
_LOOKED_AT = 200
"""Best ones that are compared with the query letter by letter."""
_MAX_CHARACTERS = 2_000
"""Of a name or a value of the metadata."""
_WORD_IN_NAME = re.compile(r"(?<=[a-zа-яё])(?=[A-ZА-ЯЁ])|(?<=[^\W\d_])(?=\d)|(?<=\d)(?=[^\W\d_])")
"""Where a new word begins in "LeavePolicy2024"."""


class RankedNames(NamedTuple):
    """Document ids, best first."""

    exact: list[str]
    """Those that are called just so."""
    alike: list[str]
    """All that are called like it, the exact ones too."""


class DocumentNames:
    """The names of one scope's documents as a BM25 index; its statistics are the scope's own."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self._documents = documents
        self._postings: defaultdict[str, list[tuple[int, float]]] = defaultdict(list)
        for at, document in enumerate(documents):
            terms = _name_terms(document)
            length = sum(terms.values())
            for term, count in terms.items():
                self._postings[term].append((at, term_weight(count, length)))

    def rank(self, query: str) -> RankedNames:
        """Ids of the documents that share a word with the query, best first."""
        scores: defaultdict[int, float] = defaultdict(float)
        for term, share in weigh_terms(query).items():
            found = self._postings.get(term, ())
            idf = lucene_idf(len(self._documents), len(found))
            for at, weight in found:
                scores[at] += min(share, 1.0) * idf * weight
        best_first = sorted(scores, key=lambda at: (-scores[at], at))
        if not best_first:
            return RankedNames([], [])
        enough = scores[best_first[0]] * _NEXT_BEST
        close = [at for at in best_first if scores[at] >= enough]
        exact = [at for at in close[:_LOOKED_AT] if is_called(self._documents[at], query)]
        return RankedNames(*([self._documents[at].id for at in places] for places in (exact, close)))


@dataclass(frozen=True, slots=True)
class _Kept:
    names: DocumentNames
    count: int
    until: float


class KnownNames:
    """Names by scope, read again when the number of documents changes or some minutes have passed."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._kept: OrderedDict[Scope, _Kept] = OrderedDict()

    async def rank(self, query: str, scope: Scope, *, count: int) -> RankedNames:
        """Ids of the scope's documents that are called like the query, best first; `count`: how many it has now."""
        async with lock_of_listing(self._library, scope):
            kept = self._kept.get(scope)
            if kept is None or kept.count != count or kept.until < time.monotonic():
                documents = await self._library.adocuments(scope)
                names = await asyncio.to_thread(DocumentNames, documents)
                kept = _Kept(names, count, time.monotonic() + KEPT_SECONDS)
            self._kept[scope] = kept
        self._kept.move_to_end(scope)
        while len(self._kept) > KEPT_SCOPES or sum(item.count for item in self._kept.values()) > KEPT_DOCUMENTS:
            self._kept.popitem(last=False)
        return await asyncio.to_thread(kept.names.rank, query)


def _name_terms(document: Document) -> dict[str, int]:
    source = document.source[-_MAX_CHARACTERS:]
    told = [str(value)[:_MAX_CHARACTERS] for value in document.metadata.values() if isinstance(value, str | int)]
    names = [document.title[:_MAX_CHARACTERS], PurePosixPath(source).name, _WORD_IN_NAME.sub(" ", source), *told]
    return count_terms("\n".join(names))
