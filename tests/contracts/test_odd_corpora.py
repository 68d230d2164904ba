"""Odd owners, odd metadata and odd corpora, over every store."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graphrag_agent.errors import KnowledgeBaseError
from graphrag_agent.graph.loop import principal_of
from graphrag_agent.identity import Principal, acting_as
from graphrag_agent.retrieval.embedders import LangChainEmbedder
from graphrag_agent.retrieval.knowledge_base import KnowledgeBase
from graphrag_agent.retrieval.scope import Scope
from graphrag_agent.retrieval.stores.port import ChunkStore
from tests.hashing_embeddings import HashingEmbeddings
from tests.permission_world import PROFILE, owned_by, put, take_out
from tests.store_backends import BACKENDS, opened_store

NAMES = [
    'O\'Brien "x"',
    "汉字",
    "*",
    "a,b|c=d",
    "é",
    "e\u0301",
    "HR",
    "hr",
    " hr ",
    "null",
    "tenant",
    "🚀",
    "\\",
    "%",
    "a.b[0]",
]
"""No two are the same; a store that folds, trims, splits or interprets names mixes some of them up."""


@pytest.fixture(scope="module", params=BACKENDS)
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChunkStore]:
    with opened_store(request.param, tmp_path_factory.mktemp("kb")) as opened:
        asyncio.run(opened.write_profile(PROFILE))
        yield opened


@pytest.fixture(scope="module")
def shared(store: ChunkStore, tmp_path_factory: pytest.TempPathFactory) -> KnowledgeBase:
    embedder = LangChainEmbedder(HashingEmbeddings(), identity=PROFILE.embedder)
    return KnowledgeBase(store, embedder, tmp_path_factory.mktemp("root"))


@pytest.fixture
def knowledge(shared: KnowledgeBase) -> Iterator[KnowledgeBase]:
    """Empty at the start of each test, for the public principal."""
    yield shared
    for document in shared.documents():
        shared.delete(document.id)


def write(folder: Path, **pages: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name, text in pages.items():
        (folder / f"{name}.md").write_text(text, encoding="utf-8")
    return folder


def titles(knowledge: KnowledgeBase, query: str, **options: Any) -> list[str]:
    return [hit.chunk.title for hit in knowledge.search(query, **options).hits]


async def test_every_name_stands_for_itself_alone(shared: KnowledgeBase, store: ChunkStore) -> None:
    groups = [name for name in NAMES if name != "*"]  # an ingest refuses it as a group
    places: list[tuple[str, tuple[str, ...], str, str]] = [
        *(("default", (), name, "md") for name in NAMES),
        *((name, (), "c", "md") for name in NAMES),
        *(("grouped", (name,), name, "md") for name in groups),
    ]
    corpus = [owned_by(number, place, [1]) for number, place in enumerate(places)]
    await put(store, corpus)

    async def found(scope: Scope) -> list[tuple[str, str]]:
        hits = (await shared.asearch("pump", scope=scope)).hits
        assert len(await shared.adocuments(scope)) == (await shared.astats(scope)).chunks == len(hits)
        return [(hit.chunk.tenant, hit.chunk.collection) for hit in hits]

    for name in NAMES:
        assert await found(Scope("default").narrowed(collections=[name])) == [("default", name)]
        assert await found(Scope(name)) == [(name, "c")]
        as_group = Scope.of(Principal("grouped", groups=(name,)))
        assert await found(as_group) == ([("grouped", name)] if name in groups else [])
    await take_out(store, corpus)


@pytest.mark.parametrize("value", ["", "\0", "a\0", "\ud800", "' OR 1=1", '{"any": []}', "*", "x" * 100_000], ids=repr)
def test_a_hostile_filter_value_matches_nothing_and_breaks_nothing(
    knowledge: KnowledgeBase, tmp_path: Path, value: str
) -> None:
    knowledge.ingest(write(tmp_path / "pages", page="# Page\n\nThe pump hums.\n"))
    for field in ("collections", "document_ids", "source_types"):
        scope = Scope("default").narrowed(**{field: [value]})
        assert knowledge.search("pump", scope=scope).hits == ()
        assert knowledge.documents(scope) == []
        assert knowledge.stats(scope)[:2] == (0, 0)
        both = Scope("default").narrowed(**{field: [value, *_values(knowledge, field)]})
        assert titles(knowledge, "pump", scope=both) == ["Page"]
    assert knowledge.search("pump", scope=Scope(value)).hits == ()
    assert titles(knowledge, "pump", scope=Scope("default", frozenset({value}))) == ["Page"]
    with pytest.raises(KnowledgeBaseError, match="no document"):
        knowledge.read(value)
    assert knowledge.delete(value) is False


def _values(knowledge: KnowledgeBase, field: str) -> list[str]:
    [document] = knowledge.documents()
    return [{"collections": document.collection, "document_ids": document.id, "source_types": "md"}[field]]


def test_a_text_is_one_name_wherever_names_are_asked_for() -> None:
    class User(dict[str, Any]):
        identity = "ann"

    assert principal_of(User(tenant="acme", groups="hr")) == Principal("acme", "ann", ("hr",))
    assert Scope.of(Principal(groups="hr")).groups == {"hr"}  # type: ignore[arg-type]
    assert Scope("t").narrowed(collections="wiki").narrowed(collections="wiki").collections == {"wiki"}


def test_metadata_comes_back_as_it_was(knowledge: KnowledgeBase, tmp_path: Path) -> None:
    deep: Any = "end"
    for _ in range(30):
        deep = {"'\"\0🚀": [deep]} if isinstance(deep, str) else {"d": deep}
    metadata = {
        "note": "quotes \" and '",
        "none": None,
        "汉字": "é\0",
        "long": "x" * 200_000,
        "deep": deep,
        "": [1.5, True],
    }
    hidden = {"inner": {"tenant": "globex", "groups": ["*"], "collection": "board", "document_id": "d"}}
    dotted = {"body.text": "x", "tenant.x": "globex", "groups[0]": "*"}
    knowledge.ingest(
        write(tmp_path / "pages", page="# Page\n\nThe pump hums.\n"), metadata={**metadata, **hidden, **dotted}
    )
    [document] = knowledge.documents()
    assert document.metadata == {**metadata, **hidden, **dotted}
    assert (document.tenant, document.groups, document.collection) == ("default", (), "default")
    assert knowledge.documents(Scope("globex")) == []
    assert titles(knowledge, "pump") == ["Page"]


def test_the_same_text_with_other_metadata_is_found_once_and_listed_twice(
    knowledge: KnowledgeBase, tmp_path: Path
) -> None:
    pages = write(tmp_path / "pages", one="# Page\n\nThe pump hums.\n", two="# Page\n\nThe pump hums.\n")
    for year, name in enumerate(("one", "two"), start=2024):
        knowledge.ingest(pages / f"{name}.md", metadata={"year": year})
    result = knowledge.search("pump")
    assert len(result.hits) == 1
    assert [item["duplicate_of"] for item in result.trace["dropped"]] == [result.hits[0].chunk.id]
    assert sorted(document.metadata["year"] for document in knowledge.documents()) == [2024, 2025]


def test_the_same_document_under_two_names_is_deleted_one_name_at_a_time(
    knowledge: KnowledgeBase, tmp_path: Path
) -> None:
    pages = write(tmp_path / "pages", one="# Page\n\nThe pump hums.\n", two="# Page\n\nThe pump hums.\n")
    knowledge.ingest(pages)
    first, second = knowledge.documents()
    assert first.id != second.id
    assert knowledge.delete(first.id)
    assert [hit.chunk.document_id for hit in knowledge.search("pump").hits] == [second.id]


def test_thirty_near_equal_chunks_leave_room_for_another_source(knowledge: KnowledgeBase, tmp_path: Path) -> None:
    sentence = "The pump must be checked by a trained person who has read the manual and signed the form. "
    log = "# Log\n\n" + "\n\n".join((sentence * 12).strip() for _ in range(30))
    knowledge.ingest(write(tmp_path / "pages", log=log, other="# Other\n\nA pump needs oil, too.\n"))
    found = titles(knowledge, "pump", top_k=5)
    assert found.count("Log") >= 1
    assert "Other" in found
    assert len(found) < 5  # equal ones don't fill the places


def test_equal_headings_of_different_files_stay_apart(knowledge: KnowledgeBase, tmp_path: Path) -> None:
    pages = write(
        tmp_path / "pages",
        a="# Manual\n\n## Start\n\nTurn the blue valve.\n",
        b="# Manual\n\n## Start\n\nPull the red lever.\n",
    )
    knowledge.ingest(pages)
    hits = knowledge.search("start", legs=["bm25"]).hits
    assert {hit.chunk.heading for hit in hits} == {"Manual > Start"}
    assert len({hit.chunk.document_id for hit in hits}) == 2
    for hit in hits:
        whole = knowledge.read(hit.chunk.document_id, start=hit.chunk.start, end=hit.chunk.end)
        assert whole == hit.chunk.text


def test_more_hits_than_there_are_bring_all_there_are(knowledge: KnowledgeBase, tmp_path: Path) -> None:
    pages = write(tmp_path / "pages", a="# A\n\nThe pump hums.\n", b="# B\n\nThe pump leaks.\n")
    knowledge.ingest(pages)
    knowledge.ingest(write(tmp_path / "board", c="# C\n\nThe pump is sold.\n"), groups=["board"])
    assert sorted(titles(knowledge, "pump", top_k=10_000)) == ["A", "B"]
    with acting_as(Principal(groups=("board",))):
        assert sorted(titles(knowledge, "pump", top_k=10_000)) == ["A", "B", "C"]
        for document in knowledge.documents():
            knowledge.delete(document.id)


def test_a_scope_that_allows_nothing_says_so_and_asks_nobody(knowledge: KnowledgeBase, tmp_path: Path) -> None:
    knowledge.ingest(write(tmp_path / "pages", a="# A\n\nThe pump hums.\n"))
    result = knowledge.search("pump", scope=Scope("default").narrowed(collections=[]))
    assert result.hits == ()
    assert "nothing to search here" in result.note
    assert knowledge.stats(Scope("default").narrowed(document_ids=[]))[:2] == (0, 0)


async def test_one_document_may_be_read_while_it_is_written_again(knowledge: KnowledgeBase, tmp_path: Path) -> None:
    pages = write(tmp_path / "pages", a="# A\n\nThe pump hums.\n")
    await knowledge.aingest(pages)
    for round_ in range(3):
        write(pages, a=f"# A\n\nThe pump hums, version {round_}.\n")
        _, *results = await asyncio.gather(
            knowledge.aingest(pages), *(knowledge.asearch("pump", legs=["bm25"]) for _ in range(5))
        )
        assert all({hit.chunk.title for hit in result.hits} <= {"A"} for result in results)
    result = await knowledge.asearch("pump", legs=["bm25"])
    assert [hit.chunk.text for hit in result.hits] == ["# A\n\nThe pump hums, version 2."]
    for document in await knowledge.adocuments():
        await knowledge.adelete(document.id)
