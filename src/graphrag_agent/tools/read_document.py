"""The tool that reads a document, or a part of it, in order."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator, Mapping, Sequence
from itertools import dropwhile, groupby, takewhile
from typing import Annotated, Any, NamedTuple

from langchain_core.tools import InjectedToolArg, StructuredTool
from pydantic import Field

from graphrag_agent.errors import ToolArgumentError
from graphrag_agent.tools._library import (
    MAX_ID_CHARACTERS,
    Library,
    OpenedDocument,
    listed,
    open_document,
    page_ranges,
    plain,
    spellings,
)
from graphrag_agent.tools._passages import Segment, cut_segments, join_segments, passage_evidence, split_segments
from graphrag_agent.tools.evidence_message import READS_ON, render_evidence
from graphrag_agent.tools.knowledge_search import reader_of
from graphrag_agent.tools.spec import ToolSpec

READ_TOKENS = 2_000
"""Of the document's text in one reading: an eighth of what a turn may show."""

READ_SECONDS = 20.0
"""As a search."""

_SHOWN_HEADINGS = 20
_MAX_HEADING = 1_000
_MAX_NUMBER = 1_000_000_000


class _Part(NamedTuple):
    """What of a document is to be read."""

    start: int
    end: int
    name: str
    """As the note calls it."""
    again: tuple[int, ...] = ()
    """Where else the document has a section under the same heading."""


def build_read_document(library: Library) -> ToolSpec:
    """A `read_document` over this knowledge base; the scope of each call is injected by the loop."""

    async def read_document(
        document_id: Annotated[
            str,
            Field(
                min_length=1,
                max_length=MAX_ID_CHARACTERS,
                description="Id from find_documents, or the exact title of a passage",
            ),
        ],
        scope: Annotated[Any, InjectedToolArg],
        page: Annotated[int | None, Field(ge=1, le=_MAX_NUMBER, description="Read this page")] = None,
        heading: Annotated[
            str | None, Field(min_length=1, max_length=500, description="Read the section under this heading")
        ] = None,
        start: Annotated[
            int | None, Field(ge=0, le=_MAX_NUMBER, description="Read on from this character, as a note said")
        ] = None,
    ) -> tuple[str, dict[str, Any]]:
        """Read a document in order: from its beginning, a page, the section under a heading, or on from `start`.

        Use it when a passage isn't enough: for what stands before or after it, for a whole section, or for a document
        that the user names. Give at most one of page, heading and start. Long texts come in pieces; the note says how
        to read on. To find a fact use knowledge_search. Cite what you use by its id in square brackets.
        """
        given = [name for name, value in (("page", page), ("heading", heading), ("start", start)) if value is not None]
        if len(given) > 1:
            raise ToolArgumentError(f"give one of {' and '.join(given)}, not {len(given)}")
        opened = await open_document(library, document_id, scope)
        return await asyncio.to_thread(_read, opened, page, heading, start)

    tool = StructuredTool.from_function(
        coroutine=read_document,
        name="read_document",
        description=inspect.cleandoc(read_document.__doc__ or ""),
        response_format="content_and_artifact",
    )
    read = reader_of(library)
    return ToolSpec(tool, family="documents", side_effect_free=True, timeout_seconds=READ_SECONDS, read=read)


def _read(
    opened: OpenedDocument, page: int | None, heading: str | None, start: int | None
) -> tuple[str, dict[str, Any]]:
    document = opened.document
    text, segments = document.text, split_segments(document, opened.chunks)
    if page is not None:
        part = _page(segments, page)
    elif heading is not None:
        part = _section(segments, heading)
    else:
        part = _rest(text, start or 0)
    taken = cut_segments(text, segments, part.start, part.end, READ_TOKENS)
    shown = [item for item in (passage_evidence(document, segment) for segment in join_segments(text, taken)) if item]
    end = taken[-1].end if taken else part.end
    content, artifact = render_evidence(shown, note=_note(text, part, end))
    return content, {**artifact, READS_ON: True}


def _rest(text: str, start: int) -> _Part:
    if start and start >= len(text):
        raise ToolArgumentError(f"start={start} is behind the end: the document has {len(text)} characters")
    return _Part(start, len(text), "the document")


def _page(segments: Sequence[Segment], page: int) -> _Part:
    run = list(takewhile(lambda item: item.page == page, dropwhile(lambda item: item.page != page, segments)))
    if not run:
        pages = sorted({segment.page for segment in segments if segment.page is not None})
        has = f"its pages with text are {page_ranges(pages)}" if pages else "it has no pages; give a heading, or start"
        raise ToolArgumentError(f"page={page} is not in this document: {has}")
    return _Part(run[0].start, run[-1].end, f"page {page}")


def _section(segments: Sequence[Segment], heading: str) -> _Part:
    """The text under the heading and the headings below it. An exact match goes before a part of one."""
    paths = list(dict.fromkeys(path for segment in segments for path in _paths(segment.heading)))
    known = {path: plain(path, _MAX_HEADING).casefold() for path in paths}
    meant = [text.lstrip("# ") for text in spellings(heading, _MAX_HEADING)]
    found = next(filter(None, (_fitting(known, wanted) for wanted in meant)), [])
    tops = [path for path in found if not any(_is_below(path, other) for other in found if other != path)]
    if len(tops) == 1:
        runs = [list(run) for is_in, run in groupby(segments, lambda item: _is_below(item.heading, tops[0])) if is_in]
        again = tuple(run[0].start for run in runs[1:])
        return _Part(runs[0][0].start, runs[0][-1].end, "this section", again)
    if tops:
        told = listed([repr(plain(path)) for path in tops], _SHOWN_HEADINGS)
        raise ToolArgumentError(f"heading={plain(heading)!r} fits {len(tops)} headings; give one of: {told}")
    has = f"headings are: {listed([repr(plain(path)) for path in paths], _SHOWN_HEADINGS)}" if paths else "it has none"
    raise ToolArgumentError(f"heading={plain(heading)!r} is not in this document; {has}")


def _fitting(known: Mapping[str, str], wanted: str) -> list[str]:
    """The paths (as they are written -> as they are compared) that are so, else end so, else have it in their end."""
    exact = [path for path, text in known.items() if text == wanted]
    ends = exact or [path for path, text in known.items() if text.endswith(f" > {wanted}")]
    return ends or [path for path, text in known.items() if wanted and wanted in text.rpartition(" > ")[2]]


def _paths(heading: str) -> Iterator[str]:
    """The heading with those above it, outermost first: "A", "A > B", "A > B > C"."""
    parts = heading.split(" > ") if heading else []
    return (" > ".join(parts[:count]) for count in range(1, len(parts) + 1))


def _is_below(path: str, top: str) -> bool:
    return path == top or path.startswith(f"{top} > ")


def _note(text: str, part: _Part, end: int) -> str:
    if not text.strip():
        return "The document has no text."
    told = _told(text, part, end)
    if not part.again:
        return told
    return f"{told} The heading comes again at start={listed(map(str, part.again), _SHOWN_HEADINGS)}."


def _told(text: str, part: _Part, end: int) -> str:
    told = f"Characters {part.start} to {end} of {len(text)}"
    if text[end : part.end].strip():
        return f"{told}; {part.name} goes on: read on with start={end}."
    if text[end:].strip():
        return f"{told}: {part.name} ends here; what follows it begins at start={end}."
    return f"{told}: the document ends here."
