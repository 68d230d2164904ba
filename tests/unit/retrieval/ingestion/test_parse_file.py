import os
from collections.abc import Callable
from pathlib import Path

import pytest

from graphrag_agent.errors import ParseError
from graphrag_agent.retrieval.ingestion.parsing import SUPPORTED_SUFFIXES, parse_file

Write = Callable[[str, bytes | str], Path]


@pytest.mark.parametrize(
    ("name", "content", "title", "source_type"),
    [
        ("sick_leave-policy.md", "Text.", "Sick leave policy", "md"),
        ("NOTES.TXT", "Text.\r\n", "NOTES", "txt"),
        ("page.htm", "<p>Text.", "Page", "html"),
        ("price-list.tsv", "a\tb\n1\t2\n", "Price list", "csv"),
    ],
)
def test_the_suffix_chooses_the_parser(write: Write, name: str, content: str, title: str, source_type: str) -> None:
    parsed = parse_file(write(name, content))
    assert (parsed.title, parsed.source_type) == (title, source_type)


def test_plain_text_is_the_file_itself(write: Write) -> None:
    assert parse_file(write("a.txt", "\ufeffone\r\n\ttwo \n")).text == "one\r\n\ttwo \n"


@pytest.mark.parametrize(
    ("name", "content", "remedy"),
    [
        ("empty.md", "", "holds no text; add some"),
        ("front.md", "---\ntitle: x\n---\n", "holds no text"),
        ("blank.txt", " \n\t", "holds no text"),
        ("picture.txt", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256)), "export it as text"),
        ("slides.ppt", "x", r"no parser for the suffix '\.ppt'; convert it to one of \.csv, "),
        ("LICENSE", "x", "no parser for a name without suffix"),
        ("torn.pdf", b"%PDF-1.4 torn", "damaged or not what its suffix says .*; open it and save it anew"),
    ],
)
def test_failures_name_the_file_and_the_remedy(write: Write, name: str, content: bytes | str, remedy: str) -> None:
    with pytest.raises(ParseError, match=rf"(?s)/{name}: .*{remedy}"):
        parse_file(write(name, content))


def test_folders_pipes_and_missing_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "folder.md").mkdir()
    os.mkfifo(tmp_path / "pipe.txt")
    for name, reason in {"folder.md": "is a folder", "pipe.txt": "not a regular file", "gone.txt": "No such"}.items():
        with pytest.raises(ParseError, match=f"{name}: .*{reason}"):
            parse_file(tmp_path / name)


def test_every_format_has_its_suffixes() -> None:
    text = {".csv", ".eml", ".htm", ".html", ".json", ".jsonl", ".markdown", ".md", ".tsv", ".txt"}
    assert {".docx", ".epub", ".odt", ".parquet", ".pdf", ".pptx", ".rtf", ".xlsx"} | text == SUPPORTED_SUFFIXES
