"""Neighbouring hits as one passage."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_agent.documents import Chunk, Hit, short_id
from graphrag_agent.errors import KnowledgeBaseError
from graphrag_agent.retrieval.search.merging import MAX_MERGED_TOKENS, merge_neighbours

DOCUMENT = "One two three.\n\nFour five six.\n\nSeven eight nine.\n\nTen eleven."
PARTS = ("One two three.", "Four five six.", "Seven eight nine.", "Ten eleven.")


class Reader:
    def __init__(self, text: str = DOCUMENT) -> None:
        self.text = text
        self.read: list[tuple[str, int, int]] = []

    async def __call__(self, document_id: str, start: int, end: int) -> str:
        self.read.append((document_id, start, end))
        return self.text[start:end]


def hit(position: int, *, heading: str = "H", page: int | None = None, document: str = "d", **span: int) -> Hit:
    start = span.get("start", DOCUMENT.index(PARTS[position]))
    end = span.get("end", start + len(PARTS[position]))
    name = f"{document}{position}"
    text = DOCUMENT[start:end]
    chunk = Chunk(name, document, "t", "c", (), "s", "md", "T", heading, page, position, text, start, end)
    return Hit(short_id(name), chunk, 1.0)


async def test_neighbours_become_the_best_ones_passage_as_the_document_has_it() -> None:
    merged, others = await merge_neighbours([hit(1), hit(3), hit(0)], read := Reader())
    first, second = merged
    assert (first.id, first.chunk.id) == (short_id("d1"), "d1")
    assert (first.chunk.start, first.chunk.end) == (0, DOCUMENT.index("\n\nSeven"))
    assert first.chunk.text == DOCUMENT[first.chunk.start : first.chunk.end]
    assert (second.chunk.id, others) == ("d3", {"d1": ("d0",)})
    assert read.read == [("d", first.chunk.start, first.chunk.end)]


@pytest.mark.parametrize(
    "other",
    [hit(1, heading="Other"), hit(1, page=2), hit(1, document="e"), hit(2)],
    ids=["heading", "page", "document", "not a neighbour"],
)
async def test_what_does_not_belong_together_stays_apart_and_nothing_is_read(other: Hit) -> None:
    assert await merge_neighbours([hit(0), other], read := Reader()) == ((hit(0), other), {})
    assert read.read == []


async def test_overlapping_chunks_are_one_whatever_their_positions() -> None:
    first, second = hit(0, start=0, end=20), hit(3, start=15, end=30)
    merged, _ = await merge_neighbours([second, first], Reader())
    assert [item.chunk.text for item in merged] == [DOCUMENT[:30]]


@pytest.mark.parametrize("text", ["One two four." + DOCUMENT[13:], "", DOCUMENT[:20]])
async def test_a_document_that_changed_meanwhile_is_not_quoted(text: str) -> None:
    hits = (hit(0), hit(1))
    assert (await merge_neighbours(hits, Reader(text))).hits == hits


async def test_a_document_that_is_gone_costs_the_merging_only() -> None:
    async def gone(document_id: str, start: int, end: int) -> str:
        raise KnowledgeBaseError("no document")

    assert (await merge_neighbours([hit(0), hit(1)], gone)).hits == (hit(0), hit(1))


async def test_a_long_run_is_cut_between_chunks() -> None:
    size = MAX_MERGED_TOKENS * 3
    text = "".join(f"{number} " * (size // 2) for number in range(3))
    chunks = [
        Chunk(str(at), "d", "t", "c", (), "s", "md", "", "", None, at, text[at * size : (at + 1) * size], *span)
        for at, span in enumerate((at * size, (at + 1) * size) for at in range(3))
    ]
    merged, _ = await merge_neighbours([Hit(chunk.id, chunk, 1.0) for chunk in chunks], Reader(text))
    assert [item.chunk.end - item.chunk.start for item in merged] == [size] * 3


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["H", "I"]), st.sampled_from("de")), unique=True))
async def test_every_chunk_is_in_exactly_one_exact_passage(chosen: list[tuple[int, str, str]]) -> None:
    hits = [hit(at, heading=heading, document=f"{name}{heading}") for at, heading, name in chosen]
    merged, others = await merge_neighbours(hits, Reader())
    shown = [name for item in merged for name in (item.chunk.id, *others.get(item.chunk.id, ()))]
    assert sorted(shown) == sorted(item.chunk.id for item in hits)
    for item in merged:
        assert item.chunk.text == DOCUMENT[item.chunk.start : item.chunk.end]
    ranks = {item.chunk.id: place for place, item in enumerate(hits)}
    assert [ranks[item.chunk.id] for item in merged] == sorted(ranks[item.chunk.id] for item in merged)
