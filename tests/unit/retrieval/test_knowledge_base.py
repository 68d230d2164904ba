from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphrag_agent.errors import EmbedderMismatchError, KnowledgeBaseError, SettingsError
from graphrag_agent.identity import Principal, acting_as
from graphrag_agent.retrieval.knowledge_base import KnowledgeBase, KnowledgeBaseStats
from graphrag_agent.retrieval.scope import Scope
from tests.hashing_embeddings import HashingEmbeddings


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "refunds.md").write_text("# Refunds\n\nRefunds are paid within 14 days.\n", encoding="utf-8")
    (tmp_path / "docs" / "pump.txt").write_text("水泵的故障代码是E-1042。", encoding="utf-8")
    return tmp_path


@pytest.fixture(params=[":memory:", "embedded"])
def knowledge(request: pytest.FixtureRequest, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[KnowledgeBase]:
    monkeypatch.chdir(folder)
    location = request.param if request.param == ":memory:" else folder / "kb"
    with KnowledgeBase.open(location, embedder=HashingEmbeddings()) as opened:
        yield opened


def test_what_was_ingested_is_found_with_its_place_in_the_text(knowledge: KnowledgeBase) -> None:
    report = knowledge.ingest("docs")
    assert (report.documents, report.chunks, report.unchanged, report.failed) == (2, 2, 0, ())
    result = knowledge.search("Wofür steht E-1042?", top_k=1)
    [hit] = result.hits
    assert (hit.chunk.source, hit.legs["bm25"].rank) == ("docs/pump.txt", 1)
    assert knowledge.read(hit.chunk.document_id, start=hit.chunk.start, end=hit.chunk.end) == hit.chunk.text
    assert result.trace["legs"]["bm25"]["candidates"] == 1
    assert result.trace["legs"]["dense"]["candidates"] == 2


def test_documents_and_stats_list_what_the_scope_holds(knowledge: KnowledgeBase) -> None:
    knowledge.ingest("docs", metadata={"year": 2024})
    assert [(item.source, item.title, item.metadata, item.text) for item in knowledge.documents()] == [
        ("docs/pump.txt", "Pump", {"year": 2024}, ""),
        ("docs/refunds.md", "Refunds", {"year": 2024}, ""),
    ]
    assert knowledge.stats() == KnowledgeBaseStats(2, 2, "HashingEmbeddings/hashing")
    assert knowledge.stats(Scope("other"))[:2] == (0, 0)


def test_tenants_with_the_same_files_find_only_their_own(knowledge: KnowledgeBase) -> None:
    knowledge.ingest("docs", tenant="acme")
    with acting_as(Principal("rival")):
        knowledge.ingest("docs")
        ours = knowledge.search("refunds", top_k=9)
    assert {hit.chunk.tenant for hit in ours.hits} == {"rival"}
    theirs = knowledge.search("refunds", scope=Scope("acme"), top_k=9)
    assert {hit.chunk.tenant for hit in theirs.hits} == {"acme"}
    assert not {hit.id for hit in ours.hits} & {hit.id for hit in theirs.hits}
    assert knowledge.search("refunds").hits == ()


def test_a_document_of_another_scope_can_be_neither_read_nor_deleted(knowledge: KnowledgeBase) -> None:
    knowledge.ingest("docs", groups=["hr"])
    hr = Scope.of(Principal(groups=("hr",)))
    [pump, _] = knowledge.documents(hr)
    with pytest.raises(KnowledgeBaseError, match="no document"):
        knowledge.read(pump.id)
    assert knowledge.delete(pump.id) is False
    assert knowledge.read(pump.id, scope=hr, end=2) == "水泵"


def test_a_deleted_document_is_gone_and_can_come_back(knowledge: KnowledgeBase) -> None:
    knowledge.ingest("docs")
    [pump, _] = knowledge.documents()
    assert knowledge.delete(pump.id) is True
    assert knowledge.delete(pump.id) is False
    assert knowledge.search("E-1042", legs=["bm25"]).hits == ()
    assert knowledge.ingest("docs").documents == 1
    assert knowledge.search("E-1042", legs=["bm25"]).hits[0].chunk.document_id == pump.id


def test_a_document_under_two_names_leaves_room_for_others(knowledge: KnowledgeBase) -> None:
    Path("docs/copy.md").write_text(Path("docs/refunds.md").read_text(encoding="utf-8"), encoding="utf-8")
    Path("docs/other.md").write_text("# Other\n\nWho asks for refunds?\n", encoding="utf-8")
    knowledge.ingest("docs")
    found = knowledge.search("refunds are paid", top_k=2, legs=["bm25"])
    assert {hit.chunk.title for hit in found.hits} == {"Refunds", "Other"}
    [dropped] = found.trace["dropped"]
    assert {dropped["source"], found.hits[0].chunk.source} == {"docs/copy.md", "docs/refunds.md"}
    assert dropped["duplicate_of"] == found.hits[0].chunk.id


def test_searches_and_an_ingest_may_run_at_once(knowledge: KnowledgeBase) -> None:
    async def together() -> list[int]:
        _, *results = await asyncio.gather(knowledge.aingest("docs"), *(knowledge.asearch("pump") for _ in range(20)))
        return [len(result.hits) for result in results]

    assert all(count <= 2 for count in asyncio.run(together()))
    assert knowledge.stats().documents == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"metadata": {"tenant": "x"}}, "metadata key 'tenant' is reserved"),
        ({"metadata": {"when": object()}}, "can't be stored as JSON"),
        ({"groups": ["*"]}, r"'\*' is reserved"),
        ({"paths": "missing"}, "missing: no such file or folder"),
    ],
    ids=["reserved key", "no JSON", "everyone's group", "missing path"],
)
def test_bad_arguments_of_an_ingest_are_refused(
    knowledge: KnowledgeBase, arguments: dict[str, object], message: str
) -> None:
    with pytest.raises(SettingsError, match=message):
        knowledge.ingest(**{"paths": "docs", **arguments})  # type: ignore[arg-type]
    assert knowledge.stats()[:2] == (0, 0)


@pytest.mark.parametrize(
    ("location", "message"),
    [("https://", "has no host"), (" ", "give a folder"), (__file__, "is a file")],
    ids=["server", "blank", "file"],
)
def test_a_location_that_cannot_be_opened_is_refused(location: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        KnowledgeBase.open(location, embedder=None)


def test_a_folder_keeps_what_was_ingested(folder: Path) -> None:
    with KnowledgeBase.open(folder / "kb", embedder=HashingEmbeddings()) as first:
        first.ingest(folder / "docs")
    with KnowledgeBase.open(folder / "kb", embedder=HashingEmbeddings()) as second:
        assert second.search("E-1042").hits[0].chunk.source == "docs/pump.txt"
        assert second.ingest(folder / "docs").unchanged == 2


def test_vectors_of_another_embedder_are_refused_but_words_still_search(folder: Path) -> None:
    with KnowledgeBase.open(folder / "kb", embedder=HashingEmbeddings("one")) as first:
        first.ingest(folder / "docs")
    with pytest.raises(EmbedderMismatchError, match=r"made with 'HashingEmbeddings/one'.*ingest into a new folder"):
        KnowledgeBase.open(folder / "kb", embedder=HashingEmbeddings("two"))
    with KnowledgeBase.open(folder / "kb", embedder="none") as plain:
        assert plain.search("E-1042").trace["legs"]["dense"] == {"skipped": "no embedder"}
        with pytest.raises(EmbedderMismatchError, match="the embedder is none"):
            plain.ingest(folder / "docs")
