"""The tool that sums up whole documents, part by part."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Annotated, Any, NamedTuple, Protocol

from langchain_core.tools import InjectedToolArg, StructuredTool
from langgraph.errors import GraphBubbleUp
from pydantic import Field, StringConstraints

from graphrag_agent.citations import Evidence
from graphrag_agent.models.key_sentences import select_key_sentences
from graphrag_agent.models.packing import fitting_end
from graphrag_agent.models.summary_writing import Written
from graphrag_agent.token_estimate import UNITS_PER_TOKEN
from graphrag_agent.tools._library import MAX_ID_CHARACTERS, Library, OpenedDocument, open_document, page_ranges, plain
from graphrag_agent.tools._passages import Segment, cut_segments, passage_evidence, split_segments
from graphrag_agent.tools.evidence_message import render_evidence
from graphrag_agent.tools.knowledge_search import reader_of
from graphrag_agent.tools.made_evidence import made_evidence
from graphrag_agent.tools.progress import tell_progress
from graphrag_agent.tools.spec import ToolSpec

logger = logging.getLogger(__name__)

MAX_DOCUMENTS = 8
PART_TOKENS = 3_000
"""Of text in one call of the model: about six pages."""
MAX_PARTS = 24
"""Calls for parts, of all documents together: about 140 pages. Of longer ones parts from beginning to end are taken."""
MAX_PIECES = 6
"""Summaries in the result, of all documents together, though one of each; what is more is made one by another call."""
PART_WORDS, PIECE_WORDS = 120, 200
"""What the model is told to keep to."""
MAX_PIECE_TOKENS = 600
"""What a piece is cut to where the model did not keep to it."""
MAX_SENTENCES = 12
"""Quoted in the result where no model writes, of all documents together, though two of each."""
MAX_QUOTE_TOKENS = 120
"""Of one of them; a row of a table may be longer."""
MODEL_CALLS_AT_ONCE = 4
SUMMARY_SECONDS = 120.0
"""The largest request has eight rounds of calls, six for parts and two that merge: 12 s each."""
PARTS_SECONDS_SHARE, SECONDS_SHARE = 0.7, 0.95
"""Of the call's seconds, when the parts must be there, and when all must be: what is late counts as failed."""

_DocumentId = Annotated[str, StringConstraints(min_length=1, max_length=MAX_ID_CHARACTERS)]


class SummaryWriter(Protocol):
    """What the tool needs of a chat model."""

    async def summarize(self, text: str, *, focus: str, words: int) -> Written:
        """The text in at most about so many words; empty where it has nothing to say of the focus."""
        ...

    async def merge(self, summaries: Sequence[str], *, focus: str, words: int) -> Written:
        """Summaries of parts that follow each other as one, in at most about so many words."""
        ...


def build_summarize_documents(library: Library, *, writer: SummaryWriter | None = None) -> ToolSpec:
    """A `summarize_documents` over this knowledge base; without a writer it quotes the sentences that say most.

    A written summary is evidence of its own, whose source is the document; quoted sentences are evidence of their
    place. The artifact's `usage` has the tokens that the writer spent.
    """

    async def summarize_documents(
        document_ids: Annotated[
            list[_DocumentId],
            Field(min_length=1, max_length=MAX_DOCUMENTS, description="Ids from find_documents, or exact titles"),
        ],
        scope: Annotated[Any, InjectedToolArg],
        focus: Annotated[
            str | None, Field(max_length=500, description="What the summary should be about; leave out for all")
        ] = None,
        left: Annotated[Any, InjectedToolArg] = None,
    ) -> tuple[str, dict[str, Any]]:
        """Sum up whole documents, each by itself, or what they say about one subject.

        Use it for overviews and for documents too long to read. It takes longer than a search. For a single fact use
        knowledge_search, for the exact words read_document. Cite what you use by its id in square brackets.
        """
        began, seconds = asyncio.get_running_loop().time(), left.seconds if left else SUMMARY_SECONDS
        opened = {
            found.document.id: found
            for found in [await open_document(library, name, scope) for name in dict.fromkeys(document_ids)]
        }
        work = _Work(writer, " ".join((focus or "").split()), len(opened), began, seconds)
        found = await work.sum_up(list(opened.values()))
        usage = {"usage": {"input_tokens": work.input_tokens, "output_tokens": work.output_tokens}} if writer else {}
        content, artifact = render_evidence([item for each in found for item in each.pieces], note=_note(found))
        return content, {**artifact, **usage}

    tool = StructuredTool.from_function(
        coroutine=summarize_documents,
        name="summarize_documents",
        description=inspect.cleandoc(summarize_documents.__doc__ or ""),
        response_format="content_and_artifact",
    )
    read = reader_of(library)
    return ToolSpec(tool, family="summary", side_effect_free=True, timeout_seconds=SUMMARY_SECONDS, read=read)


class _Plan(NamedTuple):
    """A document and the parts of it that are looked at."""

    opened: OpenedDocument
    parts: list[list[Segment]]
    part_count: int
    """Of the whole document."""

    @property
    def name(self) -> str:
        return repr(plain(self.opened.document.title or self.opened.document.source, 80))

    def text_of(self, part: Sequence[Segment]) -> str:
        return self.opened.document.text[part[0].start : part[-1].end]


class _Summary(NamedTuple):
    """Of parts that follow each other."""

    text: str
    segments: list[Segment]
    is_joined: bool = False
    """It is those of its parts, since no one could be made of them."""


class _Outcome(NamedTuple):
    """What a document came to, and what is to be said about it."""

    pieces: list[Evidence]
    notes: list[str]
    is_quoted: bool = False


@dataclass
class _Work:
    """One call of the tool, and what it spends."""

    writer: SummaryWriter | None
    focus: str
    document_count: int
    began: float
    seconds: float
    total: int = 0
    done: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    _at_once: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MODEL_CALLS_AT_ONCE))

    async def sum_up(self, opened: Sequence[OpenedDocument]) -> list[_Outcome]:
        """Each document by itself; they share the calls and the room in the result."""
        parts_each = MAX_PARTS // self.document_count
        plans = await asyncio.to_thread(lambda: [_plan(item, parts_each) for item in opened])
        self.total = sum(len(plan.parts) for plan in plans)
        return await asyncio.gather(*map(self._outcome, plans))

    async def _outcome(self, plan: _Plan) -> _Outcome:
        """The document's summary as evidence, in as many pieces as there is room for."""
        if not plan.parts:
            return _Outcome([], [f"{plan.name} has no text."])
        notes = []
        if plan.part_count > len(plan.parts):
            notes.append(
                f"Of {plan.name} {len(plan.parts)} of {plan.part_count} parts were looked at, from beginning to end; "
                "read_document has the rest."
            )
        if self.writer is None:
            return await self._quoted(plan, notes)
        written = await asyncio.gather(*(self._part(self.writer, plan, part) for part in plan.parts))
        told = [item for item in written if item and item.text]
        failed = sum(item is None for item in written)
        if not told and self.focus and not failed:
            return _Outcome([], [*notes, f"{plan.name} says nothing about the focus."])
        if not told:
            return await self._quoted(plan, [*notes, f"No summary of {plan.name} could be written."])
        if failed:
            notes.append(f"{failed} of {len(written)} parts of {plan.name} could not be summed up.")
        merged = await self._merged(self.writer, told, max(1, MAX_PIECES // self.document_count))
        if joined := sum(item.is_joined for item in merged):
            notes.append(f"{joined} of {len(merged)} summaries of {plan.name} are those of parts, joined and cut.")
        return _Outcome([_written(plan, item, self.focus, is_whole=len(merged) == 1) for item in merged], notes)

    async def _part(self, writer: SummaryWriter, plan: _Plan, part: list[Segment]) -> _Summary | None:
        text = await self._asked(
            lambda: writer.summarize(plan.text_of(part), focus=self.focus, words=PART_WORDS), PARTS_SECONDS_SHARE
        )
        self.done += 1
        tell_progress(self.done, self.total)
        return None if text is None else _Summary(text, part)

    async def _merged(self, writer: SummaryWriter, told: Sequence[_Summary], most: int) -> list[_Summary]:
        """Neighbours in one, so that there are at most so many; where that fails they stay apart, cut to the room."""
        if len(told) <= most:
            return list(told)

        async def merge(group: Sequence[_Summary]) -> _Summary:
            if len(group) == 1:
                return group[0]
            texts = [item.text for item in group]
            segments = [segment for item in group for segment in item.segments]
            merged = await self._asked(lambda: writer.merge(texts, focus=self.focus, words=PIECE_WORDS), SECONDS_SHARE)
            return _Summary(merged or "\n".join(texts), segments, is_joined=not merged)

        return list(await asyncio.gather(*map(merge, _groups(told, most))))

    async def _asked(self, ask: Callable[[], Awaitable[Written]], share: float) -> str | None:
        """What the writer wrote; None where it failed or is late, which costs that part only."""
        try:
            async with asyncio.timeout_at(self.began + self.seconds * share), self._at_once:
                written = await ask()
        except GraphBubbleUp:
            raise
        except Exception as error:
            logger.warning("a part of a summary failed: %s: %s", type(error).__name__, error)
            return None
        self.input_tokens += written.input_tokens
        self.output_tokens += written.output_tokens
        return None if written.text is None else written.text.strip()

    async def _quoted(self, plan: _Plan, notes: list[str]) -> _Outcome:
        segments = [segment for part in plan.parts for segment in part]
        count = max(2, MAX_SENTENCES // self.document_count)
        found = await asyncio.to_thread(_quote, plan.opened, segments, count, self.focus)
        if not found:
            what = "says nothing about the focus" if self.focus else "has no sentences to quote"
            notes = [*notes, f"{plan.name} {what}."]
        return _Outcome(found, notes, is_quoted=bool(found))


def _note(found: Sequence[_Outcome]) -> str:
    notes = [note for each in found for note in each.notes]
    if any(each.is_quoted for each in found):
        notes.append("These are sentences quoted from the documents, not a written summary.")
    return " ".join(notes)


def _plan(opened: OpenedDocument, most: int) -> _Plan:
    """The document in parts; of more than there is room for the first, the last, and others at equal distances."""
    text = opened.document.text
    segments = split_segments(opened.document, opened.chunks)
    parts: list[list[Segment]] = []
    start = 0
    while start < len(text):
        part = cut_segments(text, segments, start, len(text), PART_TOKENS)
        start = part[-1].end
        if text[part[0].start : start].strip():
            parts.append(part)
    count = len(parts)
    if count > most:
        parts = [parts[round(at * (count - 1) / (most - 1))] for at in range(most)]
    return _Plan(opened, parts, count)


def _groups(items: Sequence[_Summary], most: int) -> Iterator[Sequence[_Summary]]:
    bounds = [round(at * len(items) / most) for at in range(most + 1)]
    return (items[low:high] for low, high in pairwise(bounds))


def _quote(opened: OpenedDocument, segments: Sequence[Segment], count: int, focus: str) -> list[Evidence]:
    texts = [opened.document.text[segment.start : segment.end] for segment in segments]
    quoted = []
    for item in select_key_sentences(texts, count, focus=focus):
        place = segments[item.text_number]
        low = place.start + item.sentence.start
        whole = Segment(low, low + len(item.sentence.text), place.page, place.heading)
        quoted += cut_segments(opened.document.text, [whole], whole.start, whole.end, MAX_QUOTE_TOKENS)
    found = (passage_evidence(opened.document, segment) for segment in quoted)
    return [item for item in found if item]


def _written(plan: _Plan, summary: _Summary, focus: str, *, is_whole: bool) -> Evidence:
    document, first, last = plan.opened.document, summary.segments[0], summary.segments[-1]
    end = fitting_end(summary.text, MAX_PIECE_TOKENS * UNITS_PER_TOKEN)
    pages = sorted({segment.page for segment in summary.segments if segment.page is not None})
    place = f"pages {page_ranges(pages)}" if pages else "" if is_whole else f"characters {first.start} to {last.end}"
    return made_evidence(
        f"summary:{document.id}:{first.start}-{last.end}:{focus}",
        title=plain(document.title),
        source=document.source,
        heading=", ".join(part for part in ("Summary", place) if part),
        text=summary.text[:end],
    )
