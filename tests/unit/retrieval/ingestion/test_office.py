import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphrag_agent.errors import ParseError
from graphrag_agent.retrieval.ingestion.chunking import split_document
from graphrag_agent.retrieval.ingestion.parsing import parse_file
from graphrag_agent.retrieval.ingestion.parsing.office import office_parser

pytest.importorskip("kreuzberg", reason="the extra docs is not installed")

DocxBytes = Callable[[str], bytes]
DOCUMENTS = Path(__file__).parents[4] / "../shared/data/documents"
FOLDERS = ("docx", "xlsx", "other_formats", "nasty")
FILES = [path for folder in FOLDERS for path in sorted(DOCUMENTS.glob(f"{folder}/*"))]


def paragraph(text: str, style: str = "") -> str:
    look = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f'<w:p>{look}<w:r><w:t xml:space="preserve">{text}</w:t></w:r></w:p>'


def test_a_word_document_has_sections_below_its_headings(docx_bytes: DocxBytes) -> None:
    body = paragraph("Leave", "Heading1") + paragraph("Take 30 days of PTO_2024 [v1.2]! See #4 &amp; *all*.")
    parsed = office_parser(".docx")(docx_bytes(body), "Stem")
    assert parsed.text == "# Leave\n\nTake 30 days of PTO_2024 [v1.2]! See #4 & *all*."
    assert (parsed.title, parsed.source_type) == ("Leave", "docx")
    assert [(section.heading, section.kind) for section in parsed.sections] == [
        ("Leave", "heading"),
        ("Leave", "prose"),
    ]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("AT&amp;T", "AT&T"),
        ("a &lt; b &#38; c&gt;d", "a < b & c>d"),
        ("&quot;x&apos;", "\"x'"),
        ("caf&#233; &#x4e2d;", "café 中"),
    ],
)
def test_references_in_word_documents_are_not_lost(docx_bytes: DocxBytes, written: str, meant: str) -> None:
    assert office_parser(".docx")(docx_bytes(paragraph(written)), "Stem").text == meant


def test_underlined_words_are_words(docx_bytes: DocxBytes) -> None:
    run = '<w:r><w:rPr><w:u w:val="single"/></w:rPr><w:t>GACA</w:t></w:r>'
    text = "<w:r><w:t> __init__ &lt;u&gt; **k</w:t></w:r>"
    body = f"<w:p>{run}{text}</w:p><w:tbl><w:tr><w:tc><w:p>{run}{text}</w:p></w:tc></w:tr></w:tbl>"
    parsed = office_parser(".docx")(docx_bytes(body), "Stem")
    assert parsed.text == "GACA __init__ <u> **k\n\n| GACA __init__ <u> **k |\n| --- |"


def test_legacy_encodings_of_rtf_are_read() -> None:
    data = rb"{\rtf1\ansi\ansicpg1251{\fonttbl{\f0\fcharset204 Arial;}}\f0 \'cf\'f0\'e8\'e2\'e5\'f2\par}"
    assert office_parser(".rtf")(data, "Stem").text == "Привет"


def answering(**answer: Any) -> Callable[[str, bytes], dict[str, Any]]:
    return lambda suffix, data: {"title": "", **answer}


def test_slides_are_pages_with_their_notes() -> None:
    pages = [
        {"number": 1, "text": "## Plan\n\nGrow", "notes": "say hello"},
        {"number": 2, "text": "", "notes": ""},
        {"number": 3, "text": "| a | b |\n| --- | --- |\n| 1 | 2 |", "notes": ""},
    ]
    parsed = office_parser(".pptx", answering(pages=pages))(b"", "Stem")
    found = [(s.page, s.heading, s.kind, parsed.text[s.start : s.end].strip()) for s in parsed.sections]
    assert found == [
        (1, "Plan", "heading", "## Plan"),
        (1, "Plan", "prose", "Grow\n\nNotes: say hello"),
        (3, "", "table", "| a | b |\n| --- | --- |\n| 1 | 2 |"),
    ]


def test_sheets_are_pages_of_rows_with_their_columns() -> None:
    rows = [["", "SKU", "", "Since"], ["", "K-1", "", "2024-05-06 00:00:00"], ["", "", "", ""], ["", "a|b\nc", "", ""]]
    pages = [{"number": 1, "name": "Stock", "rows": rows}, {"number": 3, "name": "Left", "rows": [["only"]]}]
    parsed = office_parser(".xlsx", answering(pages=pages))(b"", "Stem")
    assert parsed.text == "SKU: K-1; Since: 2024-05-06\nSKU: a|b c\n\ncolumn 1: only"
    assert [(section.page, section.heading, section.kind) for section in parsed.sections] == [
        (1, "Stock", "table"),
        (3, "Left", "table"),
    ]


def test_addresses_of_links_and_escapes_are_left_out() -> None:
    text = (
        r"See [the\_page](https://x.example/a\(b\)?q=1), ![A duck](media/1.png) C:\\temp, a\|b" + "\n\n\\# no heading"
    )
    parsed = office_parser(".odt", answering(pages=[{"text": text}]))(b"", "Stem")
    assert parsed.text == "See the_page, A duck C:\\temp, a\\|b\n\n\\# no heading"


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ParseError, match=r"needs an extra; run pip install 'graphrag-agent\[docs\]'"):
        office_parser(".docx")(b"x", "Stem")


@pytest.mark.parametrize(
    ("suffix", "content", "reason"),
    [
        (".docx", b"", "empty file; add text"),
        (".docx", b"PK\x03\x04 torn", "damaged or not a docx file .*; open it and save it anew"),
        (".xlsx", b"a,b\n1,2\n", "damaged or not a xlsx file"),
        (".xlsx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1 old", r"of the old kind; save it as \.xlsx"),
        (".docx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "EncryptedPackage".encode("utf-16-le"), "by a password"),
        (".rtf", b"plain words", "not an rtf file; give it the suffix of what it is"),
    ],
)
def test_unreadable_files_are_refused_with_a_remedy(suffix: str, content: bytes, reason: str) -> None:
    with pytest.raises(ParseError, match=reason):
        office_parser(suffix)(content, "Stem")


def test_a_wrong_suffix_is_named(docx_bytes: DocxBytes) -> None:
    with pytest.raises(ParseError, match=r"a docx file, not pptx; give it the suffix \.docx"):
        office_parser(".pptx")(docx_bytes(paragraph("x")), "Stem")


def test_a_bomb_is_refused_and_the_next_file_is_read(docx_bytes: DocxBytes, tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.docx"
    with (
        zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("word/document.xml", "w") as part,
    ):
        for _ in range(200):
            part.write(b" " * 1_000_000)
    with pytest.raises(ParseError, match=r"bomb\.docx: unpacks to too much .*; split it"):
        parse_file(bomb)
    assert office_parser(".docx")(docx_bytes(paragraph("still here")), "Stem").text == "still here"


@pytest.mark.skipif(not FILES, reason="../shared/data is not laid here")
@pytest.mark.parametrize("path", FILES or [Path("absent")], ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_real_file_has_chunks_or_one_clear_error(path: Path) -> None:
    try:
        parsed = parse_file(path)
    except ParseError as error:
        reason = str(error).removeprefix(f"{path}: ")
        assert "; " in reason and "\n" not in reason and len(reason) < 400
        return
    passages = split_document(parsed)
    assert passages
    assert all(parsed.text[passage.start : passage.end] == passage.text for passage in passages)


@pytest.mark.skipif(not FILES, reason="../shared/data is not laid here")
def test_real_files_say_what_they_said() -> None:
    cups = parse_file(DOCUMENTS / "xlsx/stanley-cups.xlsx")
    assert "Team: Maple Leafs; Location: TOR; Stanley Cups: 13" in cups.text.split("\n")
    assert [(s.page, s.heading) for s in cups.sections] == [(1, "Stanley Cups"), (2, "Stanley Cups Since 67")]
    slide = parse_file(DOCUMENTS / "other_formats/fake-power-point-table.pptx")
    assert "| Tangerine | Pink | Aqua |" in slide.text
    assert {(s.page, s.heading) for s in slide.sections} == {(1, "A Slide with a Table")}
    assert parse_file(DOCUMENTS / "docx/textbox.docx").title == "傳染病通報作業流程"
