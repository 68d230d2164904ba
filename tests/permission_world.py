"""Random corpora of several owners in which every document has a secret of its own, and who may see which.

A secret is a made-up word that stands in the document's id, source, title, text and metadata, so a leak of whatever
kind is a word in what came out. Much of the text is the same in all documents: they are near-duplicates of each other.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from graphrag_agent.context import AgentContext
from graphrag_agent.documents import Chunk, Document
from graphrag_agent.identity import Principal
from graphrag_agent.retrieval.scope import Scope
from graphrag_agent.retrieval.stores.port import ChunkRecord, ChunkStore, StoreProfile
from graphrag_agent.retrieval.tokenizer import count_terms
from tests.hashing_embeddings import DIMENSIONS, HashingEmbeddings

SHARED = [
    "Refunds are paid by the office after the form was signed by a person of the team that sold the goods and when the "
    "goods have come back in the box in which they were sent with all papers and without any marks of use or of water "
    "so that the shop can sell them again to other people",
    "Pump repairs begin with the cable since most of the faults sit there and end with a test run",
]
QUERY = "refunds and pump repairs"
"""Finds every chunk, by words and by vector."""
UNKNOWN = "zqzzzxv"
"""A word like a secret that no document has."""
PROFILE = StoreProfile("LangChainEmbedder", DIMENSIONS)

TENANTS, GROUPS, COLLECTIONS, TYPES = ("acme", "globex"), ("hr", "legal", "it"), ("wiki", "board"), ("md", "pdf")


@dataclass(frozen=True)
class Owned:
    """A document with its chunks."""

    secret: str
    document: Document
    chunks: tuple[Chunk, ...]
    texts: Sequence[int]
    """Which of the shared texts each chunk has."""


@dataclass(frozen=True)
class Asking:
    """Who asks, and how the request narrows what that principal may see."""

    principal: Principal
    context: AgentContext

    @property
    def scope(self) -> Scope:
        narrowing = {name: getattr(self.context, name) for name in ("collections", "document_ids", "source_types")}
        return Scope.of(self.principal).narrowed(**narrowing)

    def may_see(self, owned: Owned) -> bool:
        """The rule, written a second time and without any code of the package."""
        item, context = owned.document, self.context
        return (
            item.tenant == self.principal.tenant
            and (not item.groups or any(group in self.principal.groups for group in item.groups))
            and (context.collections is None or item.collection in context.collections)
            and (context.document_ids is None or item.id in context.document_ids)
            and (context.source_types is None or item.source_type in context.source_types)
        )


def secret_of(number: int) -> str:
    """A word without digits (numbers would keep near-duplicates apart) that no text has by chance."""
    return "zq" + "".join(chr(ord("a") + int(digit)) for digit in f"{number:03d}") + "xv"


def owned_by(number: int, places: tuple[str, tuple[str, ...], str, str], texts: Sequence[int]) -> Owned:
    """The document with this number, of this tenant, groups, collection and format, with these texts."""
    tenant, groups, collection, source_type = places
    secret = secret_of(number)
    access: dict[str, Any] = {
        "tenant": tenant,
        "groups": groups,
        "collection": collection,
        "source_type": source_type,
        "source": f"{secret}.{source_type}",
    }
    chunks, whole = [], ""
    for position, which in enumerate(texts):
        text = f"{SHARED[which]} {secret}"
        start = len(whole)
        whole += text + "\n"
        chunks.append(
            Chunk(
                id=f"{secret}-{position}",
                document_id=f"doc-{secret}",
                title=f"Handbook {secret}",
                heading="",
                page=None,
                position=position,
                text=text,
                start=start,
                end=start + len(text),
                **access,
            )
        )
    document = Document(
        id=f"doc-{secret}",
        title=f"Title {secret}",
        text=whole,
        content_hash=f"hash-{secret}",
        metadata={"note": secret},
        chunk_count=len(chunks),
        **access,
    )
    return Owned(secret, document, tuple(chunks), texts)


_PLACES = st.tuples(
    st.sampled_from(TENANTS),
    st.lists(st.sampled_from(GROUPS), max_size=2, unique=True).map(tuple),
    st.sampled_from(COLLECTIONS),
    st.sampled_from(TYPES),
)
_TEXTS = st.lists(st.sampled_from(range(len(SHARED))), min_size=1, max_size=2)
CORPORA = st.lists(st.tuples(_PLACES, _TEXTS), min_size=2, max_size=7).map(
    lambda drawn: [owned_by(number, places, texts) for number, (places, texts) in enumerate(drawn)]
)
_CONTEXTS = st.builds(
    AgentContext,
    collections=st.none() | st.lists(st.sampled_from(COLLECTIONS), max_size=2).map(tuple),
    document_ids=st.none() | st.lists(st.integers(0, 7).map(lambda n: f"doc-{secret_of(n)}"), max_size=5).map(tuple),
    source_types=st.none() | st.lists(st.sampled_from(TYPES), max_size=2).map(tuple),
)
_PRINCIPALS = st.builds(
    Principal, tenant=st.sampled_from(TENANTS), groups=st.lists(st.sampled_from(GROUPS), max_size=2).map(tuple)
)
ASKING = st.builds(Asking, _PRINCIPALS, st.just(AgentContext()) | _CONTEXTS)


async def put(store: ChunkStore, corpus: Sequence[Owned]) -> None:
    """The corpus in the store, as an ingest leaves it."""
    embed = HashingEmbeddings().embed_query
    chunks = [chunk for owned in corpus for chunk in owned.chunks]
    vectors = [unit(embed(chunk.index_text)) for chunk in chunks]
    terms = [count_terms(chunk.index_text) for chunk in chunks]
    await store.write_chunks(list(map(ChunkRecord, chunks, terms, vectors)))
    for owned in corpus:
        await store.write_document(owned.document)


async def take_out(store: ChunkStore, corpus: Sequence[Owned]) -> None:
    """The store as it was before `put`."""
    for owned in corpus:
        await store.remove_document(owned.document.id)
    await store.remove_chunks([chunk.id for owned in corpus for chunk in owned.chunks])


def copied_for(tenant: str, corpus: Sequence[Owned]) -> list[Owned]:
    """The same documents once more, with secrets of their own, all of this tenant."""
    return [
        owned_by(
            number, (tenant, owned.document.groups, owned.document.collection, owned.document.source_type), owned.texts
        )
        for number, owned in enumerate(corpus, start=500)
    ]


def unit(vector: Sequence[float]) -> list[float]:
    length = sum(value * value for value in vector) ** 0.5 or 1.0
    return [value / length for value in vector]


def everything(*values: object) -> str:
    """All that the values hold, as one text to look for secrets in."""
    return "\n".join(value if isinstance(value, str) else json.dumps(value, default=repr) for value in values)
