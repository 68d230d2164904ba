"""The folder of real files, hostile ones among them: chunks or one clear reason for each, and the expected text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graphrag_agent import KnowledgeBase
from graphrag_agent.retrieval.ingestion.parsing import find_files
from graphrag_agent.retrieval.ingestion.pipeline import IngestReport

DOCUMENTS = (Path(__file__).parents[3] / "shared" / "data" / "documents").resolve()
EXPECTED = ("csv_spectrum_expected", "pdf_expected")
MANIFEST: dict[str, dict[str, Any]] = (
    {item["file"]: item for item in json.loads((DOCUMENTS / "MANIFEST.json").read_text(encoding="utf-8"))}
    if DOCUMENTS.is_dir()
    else {}
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not MANIFEST, reason="the documents are not beside this checkout (../shared/data)"),
]

SCANNED = "no text in it: scanned or empty; run OCR on it first"
LOCKED = "protected by a password; save a copy without one"
TORN = "damaged or not what its suffix says (PdfReadError: startxref not found); open it and save it anew"
FAILURES = {
    "nasty/2206.01062_pg3.pdf": LOCKED,
    "nasty/MEDRPT-2024-PAT-3847_medical_report_scan.pdf": SCANNED,
    "nasty/empty.eml": "no e-mail in it: it has no headers; give it the suffix of what it is",
    "nasty/encrypted_doc_no_id.pdf": SCANNED,
    "nasty/fake-text-all-whitespace.txt": "holds no text; add some or leave it out",
    "nasty/issue-1113-evil-xobjects.pdf": TORN,
    "nasty/libreoffice-writer-password.pdf": LOCKED,
    "nasty/non_text_searchable.pdf": SCANNED,
    "nasty/ocr_test.pdf": SCANNED,
    "nasty/ocr_test_rotated_180.pdf": SCANNED,
    "nasty/password.pdf": LOCKED,
    "nasty/password_protected.xlsx": LOCKED,
    "nasty/rc4-40.pdf": LOCKED,
    "nasty/testUnicodePassword.pdf": LOCKED,
    "nasty/testWORD_protected_passtika.docx": LOCKED,
    "pdf/patchelf.pdf": SCANNED,
    "pdf/simple1.pdf": TORN,
}


class Ingested:
    """The folder, ingested once."""

    def __init__(self, knowledge: KnowledgeBase, report: IngestReport) -> None:
        self.report = report
        self.failures = {Path(path).relative_to(DOCUMENTS).as_posix(): error for path, error in report.failed}
        listed = knowledge.documents()
        self.chunks = {Path(found.source).relative_to(DOCUMENTS).as_posix(): found.chunk_count for found in listed}
        self._ids = {Path(found.source).relative_to(DOCUMENTS).as_posix(): found.id for found in listed}
        self._knowledge = knowledge

    def text(self, name: str) -> str:
        return self._knowledge.read(self._ids[name])


@pytest.fixture(scope="module")
def ingested() -> Iterator[Ingested]:
    pytest.importorskip("kreuzberg", reason="the extra docs is not installed")
    folders = [path for path in DOCUMENTS.iterdir() if path.is_dir() and path.name not in EXPECTED]
    with KnowledgeBase.open(":memory:", embedder="none") as knowledge:
        yield Ingested(knowledge, knowledge.ingest(folders))


def test_every_file_has_chunks_or_one_clear_reason(ingested: Ingested) -> None:
    files = find_files([path for path in DOCUMENTS.iterdir() if path.is_dir() and path.name not in EXPECTED])
    names = {path.relative_to(DOCUMENTS).as_posix() for path in files}
    assert names == ingested.chunks.keys() | ingested.failures.keys()
    assert not ingested.chunks.keys() & ingested.failures.keys()
    assert all(count > 0 for count in ingested.chunks.values())
    assert ingested.report.chunks == sum(ingested.chunks.values())


def test_what_fails_is_what_cannot_be_read_and_the_reason_says_so(ingested: Ingested) -> None:
    expected = {name: f"{DOCUMENTS / name}: {reason}" for name, reason in FAILURES.items()}
    assert ingested.failures == {name: reason for name, reason in expected.items() if (DOCUMENTS / name).exists()}


def rows_of(name: str) -> list[dict[str, str]]:
    rows: list[dict[str, str]] = json.loads((DOCUMENTS / "csv_spectrum_expected" / name).read_text(encoding="utf-8"))
    return [{key: " ".join(value.split()) for key, value in row.items()} for row in rows]


@pytest.mark.parametrize("path", sorted(DOCUMENTS.glob("csv_spectrum_expected/*.json")), ids=lambda path: path.stem)
def test_rows_of_a_table_are_the_expected_ones(ingested: Ingested, path: Path) -> None:
    text = ingested.text(f"csv_spectrum/{path.stem}.csv")
    expected = ["; ".join(f"{key}: {value}" for key, value in row.items() if value) for row in rows_of(path.name)]
    assert text.split("\n") == expected


@pytest.mark.parametrize("path", sorted(DOCUMENTS.glob("pdf_expected/*.md")), ids=lambda path: path.stem)
def test_a_pdf_has_every_expected_word(ingested: Ingested, path: Path) -> None:
    words = re.findall(r"\w+", path.read_text(encoding="utf-8"))
    found = ingested.text(f"pdf/{path.stem}.pdf")
    assert set(words) <= set(re.findall(r"\w+", found))


def test_as_much_text_comes_out_as_other_readers_find(ingested: Ingested) -> None:
    short = {}
    for name in ingested.chunks:
        observed = MANIFEST.get(name, {}).get("observed", {})
        if observed.get("chars") and name.endswith((".pdf", ".docx")):
            share = len(ingested.text(name)) / observed["chars"]
            if share < 0.97:
                short[name] = share
    assert short == {}
