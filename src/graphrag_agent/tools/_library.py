"""Documents as the tools find and open them: by id, or by a name that a model has seen, inside a scope only."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Sequence
from html import unescape
from pathlib import PurePosixPath
from typing import NamedTuple, Protocol, runtime_checkable
from weakref import WeakValueDictionary

from graphrag_agent.documents import Chunk, Document
from graphrag_agent.errors import DocumentNotFoundError, ToolArgumentError
from graphrag_agent.retrieval.evidence_tags import without_tags
from graphrag_agent.retrieval.knowledge_base import KnowledgeBaseStats
from graphrag_agent.retrieval.scope import Scope
from graphrag_agent.tools.knowledge_search import Readable

MAX_ID_CHARACTERS = 1_000
MAX_NAMED_DOCUMENTS = 20_000
"""In a scope with more of them names are not looked through: to read 10,000 takes about two seconds."""
_SHOWN_NAMES = 5
_SHOWN_RANGES = 20
_INVISIBLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\s]+")
"""Line breaks, escape sequences, changes of direction, halves of characters."""
_listing: WeakValueDictionary[tuple[asyncio.AbstractEventLoop, int, Scope], asyncio.Lock] = WeakValueDictionary()


@runtime_checkable
class Library(Readable, Protocol):
    """A knowledge base whose documents can be counted, listed and opened."""

    async def astats(self, scope: Scope | None = None) -> KnowledgeBaseStats:
        """Counts of the scope."""
        ...

    async def adocuments(self, scope: Scope | None = None) -> list[Document]:
        """By source, without their text."""
        ...

    async def adocument(self, document_id: str, scope: Scope | None = None) -> Document:
        """The document with its text. Raises DocumentNotFoundError when it isn't in the scope."""
        ...

    async def achunks(self, document_id: str, scope: Scope | None = None) -> list[Chunk]:
        """What the document was cut into, in order; empty when it isn't in the scope."""
        ...


class OpenedDocument(NamedTuple):
    """A document with its text, and its chunks as far as they stand in that text."""

    document: Document
    chunks: Sequence[Chunk]


async def open_document(library: Library, given: str, scope: Scope) -> OpenedDocument:
    """The document with this id; where there is none, the one with this source, file name or title.

    Raises ToolArgumentError, in the same words for a document that isn't there and one that may not be read.
    """
    try:
        document = await library.adocument(given, scope)
    except DocumentNotFoundError:
        document = await _document_named(library, given, scope)
    chunks = await library.achunks(document.id, scope)
    # the document may have been written anew in between
    standing = [chunk for chunk in chunks if document.text[chunk.start : chunk.end] == chunk.text]
    return OpenedDocument(document, standing)


def lock_of_listing(library: Library, scope: Scope) -> asyncio.Lock:
    """Held by whoever lists all documents of the scope: the calls of one message come at once."""
    return _listing.setdefault((asyncio.get_running_loop(), id(library), scope), asyncio.Lock())


def is_called(document: Document, name: str) -> bool:
    """Whether a reader would call the document so: by its source, its file name or its title."""
    names = document.source, PurePosixPath(document.source).name, document.title
    known = {plain(known).casefold() for known in names}
    return any(wanted in known for wanted in spellings(name) if wanted)


def spellings(name: str, max_characters: int = 300) -> list[str]:
    """A name to look for, in lower case: as it was given, and as it was meant where it has the escapes of a tag.

    A passage shows "R&D > Rules" as "R&amp;D &gt; Rules", and that is what models copy.
    """
    return list(dict.fromkeys(plain(text, max_characters).casefold() for text in (name, unescape(name))))


def plain(text: str, max_characters: int = 300) -> str:
    """On one line, without control characters and tags of evidence, cut where it is long: for names strangers chose."""
    line = _INVISIBLE.sub(" ", text).strip()
    return without_tags(line if len(line) <= max_characters else f"{line[: max_characters - 1]}…")


def listed(names: Iterable[str], most: int) -> str:
    """The names with semicolons between, and how many more there are."""
    known = list(names)
    more = f" … ({len(known) - most} more)" if len(known) > most else ""
    return "; ".join(known[:most]) + more


def page_ranges(pages: Sequence[int]) -> str:
    """Page numbers in ascending order, runs as "2-5"."""
    runs: list[list[int]] = []
    for page in pages:
        if runs and page == runs[-1][-1] + 1:
            runs[-1].append(page)
        else:
            runs.append([page])
    return listed([str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs], _SHOWN_RANGES)


async def _document_named(library: Library, name: str, scope: Scope) -> Document:
    count = (await library.astats(scope)).documents
    if count > MAX_NAMED_DOCUMENTS:
        raise ToolArgumentError(
            f"there is no document with the id {plain(name)!r}, and {count} are too many to look at titles: give an id "
            "as find_documents shows it"
        )
    async with lock_of_listing(library, scope):
        documents = await library.adocuments(scope)
        found = await asyncio.to_thread(lambda: [item for item in documents if is_called(item, name)])
    if not found:
        raise ToolArgumentError(
            f"there is no document {plain(name)!r}: give an id as find_documents shows it, or the exact title"
        )
    if len(found) > 1:
        ids = listed([f"{item.id} ({plain(item.source)})" for item in found], _SHOWN_NAMES)
        raise ToolArgumentError(f"{len(found)} documents are called {plain(name)!r}; give the id of one: {ids}")
    try:
        return await library.adocument(found[0].id, scope)
    except DocumentNotFoundError:
        raise ToolArgumentError(f"the document {plain(name)!r} was deleted just now") from None
