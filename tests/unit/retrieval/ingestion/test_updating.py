from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from graphrag_agent.errors import KnowledgeBaseError
from graphrag_agent.retrieval.ingestion.updating import UpdateReport
from graphrag_agent.retrieval.knowledge_base import KnowledgeBase
from graphrag_agent.retrieval.scope import Scope
from tests.hashing_embeddings import HashingEmbeddings

ACME = Scope("acme", frozenset({"hr"}))


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    for name in ("a", "b", "c"):
        (folder / f"{name}.md").write_text(f"# {name.upper()}\n\nfirst {name}\n", encoding="utf-8")
    return folder


@pytest.fixture
def knowledge(tmp_path: Path, docs: Path) -> Iterator[KnowledgeBase]:
    with KnowledgeBase.open(tmp_path / "kb", embedder=HashingEmbeddings()) as opened:
        opened.ingest(docs / "a.md", tenant="acme", groups=["hr"], collection="wiki", metadata={"year": 2024})
        opened.ingest([docs / "b.md", docs / "c.md"], tenant="acme")
        opened.ingest(docs / "a.md", tenant="globex")
        yield opened


def rewrite(path: Path) -> None:
    path.write_text(path.read_text(encoding="utf-8").replace("first", "second"), encoding="utf-8")


def found(knowledge: KnowledgeBase, word: str, scope: Scope) -> set[str]:
    return {hit.chunk.source for hit in knowledge.search(word, scope=scope, legs=["bm25"]).hits}


def test_changed_files_are_written_anew_where_they_belong_and_others_stay(knowledge: KnowledgeBase, docs: Path) -> None:
    assert knowledge.update(scope=ACME) == UpdateReport(updated=0, unchanged=3)
    before = knowledge.documents(ACME)
    rewrite(docs / "a.md")
    told: list[tuple[int, int, str]] = []
    report = knowledge.update(scope=ACME, progress=lambda *step: told.append(step))
    assert report == UpdateReport(updated=1, unchanged=2)
    after = knowledge.documents(ACME)
    assert [(d.id, d.tenant, d.collection, d.groups, d.metadata) for d in after] == [
        (d.id, d.tenant, d.collection, d.groups, d.metadata) for d in before
    ]
    assert (found(knowledge, "second", ACME), found(knowledge, "second", Scope("acme"))) == ({"docs/a.md"}, set())
    assert found(knowledge, "first", Scope("globex")) == {"docs/a.md"}
    assert [step[:2] for step in told if step[2].endswith(".md")] == [(1, 3), (2, 3), (3, 3)]
    assert knowledge.stats(ACME).pending == 0


def test_only_the_named_documents_of_the_scope_are_updated(knowledge: KnowledgeBase, docs: Path) -> None:
    for name in ("a", "b", "c"):
        rewrite(docs / f"{name}.md")
    named = {document.source: document.id for document in knowledge.documents(ACME)}
    assert knowledge.update([named["docs/b.md"]], scope=ACME).updated == 1
    assert found(knowledge, "second", ACME) == {"docs/b.md"}
    with pytest.raises(KnowledgeBaseError, match="no document"):
        knowledge.update([named["docs/a.md"]], scope=Scope("acme"))
    [theirs] = knowledge.documents(Scope("globex"))
    with pytest.raises(KnowledgeBaseError, match="no document"):
        knowledge.update([named["docs/c.md"], theirs.id], scope=ACME)
    assert found(knowledge, "second", ACME) == {"docs/b.md"}


def test_missing_files_are_named_and_removed_on_request_only(knowledge: KnowledgeBase, docs: Path) -> None:
    (docs / "a.md").unlink()
    assert knowledge.update(scope=ACME) == UpdateReport(updated=0, unchanged=2, missing=("docs/a.md",))
    assert found(knowledge, "first", ACME) == {"docs/a.md", "docs/b.md", "docs/c.md"}
    report = knowledge.update(scope=ACME, remove_missing=True)
    assert (report.missing, report.removed) == (("docs/a.md",), 1)
    assert found(knowledge, "first", ACME) == {"docs/b.md", "docs/c.md"}
    assert found(knowledge, "first", Scope("globex")) == {"docs/a.md"}


def test_a_file_that_fails_now_keeps_what_is_stored_of_it(knowledge: KnowledgeBase, docs: Path) -> None:
    (docs / "b.md").write_text("   ", encoding="utf-8")
    report = knowledge.update(scope=ACME, remove_missing=True)
    assert [Path(failed.path).name for failed in report.failed] == ["b.md"]
    assert (report.updated, report.unchanged, report.missing) == (0, 2, ())
    assert "docs/b.md" in found(knowledge, "first", ACME)


class Killed(BaseException):
    """Nothing of ours catches it."""


def stopped_before_chunks_change(
    knowledge: KnowledgeBase, monkeypatch: pytest.MonkeyPatch, work: Callable[[], object]
) -> None:
    """As a kill would, after the first flush."""

    async def die(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as dying:
        dying.setattr(knowledge._store._shared.store, "write_chunks", die)
        dying.setattr(knowledge._store._shared.store, "remove_chunks", die)
        with pytest.raises(Killed):
            work()


@pytest.mark.parametrize("work", ["update", "delete"])
def test_an_update_sees_what_a_kill_left_half_written_or_half_deleted(
    knowledge: KnowledgeBase, docs: Path, monkeypatch: pytest.MonkeyPatch, work: str
) -> None:
    rewrite(docs / "b.md")
    [name] = [document.id for document in knowledge.documents(ACME) if document.source == "docs/b.md"]
    act = {"update": lambda: knowledge.update(scope=ACME), "delete": lambda: knowledge.delete(name, ACME)}[work]
    stopped_before_chunks_change(knowledge, monkeypatch, act)
    assert knowledge.update(scope=ACME) == UpdateReport(updated=1, unchanged=2)
    assert (found(knowledge, "second", ACME), found(knowledge, "first", ACME)) == (
        {"docs/b.md"},
        {"docs/a.md", "docs/c.md"},
    )


def test_what_a_kill_left_half_written_is_removed_where_its_file_is_missing(
    knowledge: KnowledgeBase, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rewrite(docs / "b.md")
    stopped_before_chunks_change(knowledge, monkeypatch, lambda: knowledge.update(scope=ACME))
    (docs / "b.md").unlink()
    assert knowledge.update(scope=ACME, remove_missing=True).removed == 1
    assert found(knowledge, "first", ACME) == {"docs/a.md", "docs/c.md"}


def test_a_link_that_now_leads_elsewhere_is_no_document_of_ours(
    knowledge: KnowledgeBase, docs: Path, tmp_path: Path
) -> None:
    (tmp_path / "secret.md").write_text("# Secret\n\nkeys\n", encoding="utf-8")
    (docs / "b.md").unlink()
    (docs / "b.md").symlink_to(tmp_path / "secret.md")
    assert knowledge.update(scope=ACME).missing == ("docs/b.md",)
    assert found(knowledge, "keys", ACME) == set()


def test_a_file_outside_the_folder_is_found_again(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("elsewhere") / "note.md"
    outside.write_text("# Note\n\nfirst\n", encoding="utf-8")
    with KnowledgeBase.open(tmp_path / "kb", embedder=None) as knowledge:
        knowledge.ingest(outside)
        rewrite(outside)
        assert knowledge.update().updated == 1


def test_from_a_folder_where_no_file_is_found_nothing_is_removed(knowledge: KnowledgeBase, docs: Path) -> None:
    for path in docs.iterdir():
        path.unlink()
    with pytest.raises(KnowledgeBaseError, match=r"not one of the 3 files is found from .* nothing was removed"):
        knowledge.update(scope=ACME, remove_missing=True)
    assert len(knowledge.documents(ACME)) == 3
