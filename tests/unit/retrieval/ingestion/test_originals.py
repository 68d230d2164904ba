"""The file of a document, where it is still what was ingested."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from graphrag_agent import KnowledgeBase, Scope
from graphrag_agent.assembly import LazyKnowledge
from graphrag_agent.errors import DocumentNotFoundError, KnowledgeBaseError

TEXT = "a,b\nx,1\n"
OWN = Scope("default")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "prices.csv"
    path.write_text(TEXT)
    return path


@pytest.fixture
def knowledge(file: Path) -> Iterator[KnowledgeBase]:
    with KnowledgeBase.open(":memory:", embedder="none") as opened:
        opened.ingest(file, groups=["staff"], metadata={"year": 2024})
        yield opened


STAFF = Scope("default", frozenset({"staff"}))


async def test_it_is_read_as_it_is(knowledge: KnowledgeBase) -> None:
    (document,) = await knowledge.adocuments(STAFF)
    assert await knowledge.aoriginal(document.id, max_bytes=100, scope=STAFF) == TEXT.encode()
    lazy = LazyKnowledge(lambda: knowledge)
    assert [found.id for found in await lazy.adocuments(STAFF)] == [document.id]
    assert await lazy.aoriginal(document.id, max_bytes=100, scope=STAFF) == TEXT.encode()


@pytest.mark.parametrize("scope", [OWN, Scope("other", frozenset({"staff"})), STAFF.narrowed(collections=["x"])])
def test_outside_the_scope_it_is_unknown(knowledge: KnowledgeBase, scope: Scope) -> None:
    (document,) = knowledge.documents(STAFF)
    for name in (document.id, "nobody's", "../prices.csv", "/etc/passwd"):
        with pytest.raises(DocumentNotFoundError, match="no document"):
            knowledge.original(name, max_bytes=100, scope=scope)


def test_one_that_changed_is_not_read(knowledge: KnowledgeBase, file: Path) -> None:
    (document,) = knowledge.documents(STAFF)
    file.write_text(TEXT.replace("1", "2"))
    with pytest.raises(KnowledgeBaseError, match="has changed since it was ingested; run graphrag-agent update"):
        knowledge.original(document.id, max_bytes=100, scope=STAFF)
    knowledge.update(scope=STAFF)
    assert knowledge.original(document.id, max_bytes=100, scope=STAFF) == TEXT.replace("1", "2").encode()


def test_one_that_is_gone_or_a_link_or_a_folder_is_not_read(knowledge: KnowledgeBase, file: Path) -> None:
    (document,) = knowledge.documents(STAFF)
    other = file.with_name("other.csv")
    file.rename(other)
    for make in (lambda: None, lambda: file.symlink_to(other), file.mkdir):
        make()
        with pytest.raises(KnowledgeBaseError, match="is not where it was ingested; put it back"):
            knowledge.original(document.id, max_bytes=100, scope=STAFF)
        if file.is_symlink():
            file.unlink()


@pytest.mark.parametrize("method", ["stat", "open"])
def test_one_that_we_may_not_read_is_told(
    knowledge: KnowledgeBase, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    (document,) = knowledge.documents(STAFF)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patched, pytest.raises(KnowledgeBaseError) as refused:
        patched.setattr(Path, method, refuse)
        knowledge.original(document.id, max_bytes=100, scope=STAFF)
    assert str(refused.value) == f"the file {document.source!r} can't be read (Permission denied)"


def test_one_that_is_too_large_is_not_read(knowledge: KnowledgeBase) -> None:
    (document,) = knowledge.documents(STAFF)
    assert knowledge.original(document.id, max_bytes=len(TEXT), scope=STAFF) == TEXT.encode()
    with pytest.raises(KnowledgeBaseError, match="is larger than 0 MB; split it"):
        knowledge.original(document.id, max_bytes=len(TEXT) - 1, scope=STAFF)
