from collections.abc import Callable
from pathlib import Path

import pytest

from graphrag_agent.errors import SettingsError
from graphrag_agent.retrieval.ingestion.parsing import find_files
from graphrag_agent.retrieval.knowledge_base import KnowledgeBase
from tests.hashing_embeddings import HashingEmbeddings

Write = Callable[[str, bytes | str], Path]


def names(found: list[Path], root: Path) -> list[str]:
    return [path.relative_to(root).as_posix() for path in found]


def test_folders_give_supported_visible_files_in_order(write: Write, tmp_path: Path) -> None:
    for name in ["b.md", "a/z.TXT", "a/slides.ppt", ".hidden.md", ".git/x.md", "c.csv"]:
        write(name, "x")
    assert names(find_files([tmp_path]), tmp_path) == ["a/z.TXT", "b.md", "c.csv"]


def test_named_files_are_kept_whatever_their_suffix_and_once(write: Write, tmp_path: Path) -> None:
    slides, hidden = write("slides.pptx", "x"), write(".env.md", "x")
    found = find_files([slides, str(hidden), tmp_path, write("a.md", "x")])
    assert names(found, tmp_path) == [".env.md", "a.md", "slides.pptx"]


def test_link_loops_end_and_a_broken_link_is_kept_to_be_reported(write: Write, tmp_path: Path) -> None:
    write("a/one.md", "x")
    (tmp_path / "a/loop").symlink_to(tmp_path)
    (tmp_path / "a/broken.md").symlink_to(tmp_path / "gone.md")
    assert names(find_files([tmp_path]), tmp_path) == ["a/broken.md", "a/one.md"]


@pytest.mark.parametrize("kb", [".", "kb", "deep/kb"])
def test_what_a_knowledge_base_keeps_is_skipped_and_what_lies_beside_it_is_not(
    write: Write, tmp_path: Path, kb: str
) -> None:
    write(f"{kb}/mine.md", "# Mine\n\nhello")
    write(f"{kb}/mine/profile.json", '{"of": "a user"}')
    expected = names(find_files([tmp_path]), tmp_path)
    with KnowledgeBase.open(tmp_path / kb, embedder=HashingEmbeddings()) as knowledge:
        for _ in range(2):
            knowledge.ingest(tmp_path / kb / "mine.md")
            assert (tmp_path / kb / "profile.json").is_file()
            assert names(find_files([tmp_path]), tmp_path) == expected
    assert find_files([tmp_path / kb / "chunks"]) == []


def test_a_missing_path_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="gone: no such file or folder; check the path"):
        find_files([tmp_path / "gone"])
    with pytest.raises(SettingsError, match="'': no such file or folder; check the path"):
        find_files([""])
