import io
from collections.abc import Callable

import pypdf
import pytest

from graphrag_agent.errors import ParseError
from graphrag_agent.retrieval.ingestion.parsing.pdf import parse_pdf

PdfBytes = Callable[..., bytes]


def locked(data: bytes, password: str, **metadata: str) -> bytes:
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(data))
    writer.add_metadata({f"/{name}": value for name, value in metadata.items()})
    writer.encrypt(user_password=password, owner_password="owner", algorithm="RC4-128")
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def test_each_page_with_text_is_a_section(pdf_bytes: PdfBytes) -> None:
    parsed = parse_pdf(pdf_bytes("First page.", "", "Third page."), "Stem")
    found = [(section.page, parsed.text[section.start : section.end]) for section in parsed.sections]
    assert found == [(1, "First page."), (3, "Third page.")]
    assert parsed.title == "Stem"


@pytest.mark.parametrize(("given", "title"), [("Yearly plan", "Yearly plan"), ("Microsoft Word - a.doc", "Stem")])
def test_opens_with_an_empty_password_and_takes_a_real_title(pdf_bytes: PdfBytes, given: str, title: str) -> None:
    assert parse_pdf(locked(pdf_bytes("Text."), "", Title=given), "Stem").title == title


def test_a_locked_file_is_refused(pdf_bytes: PdfBytes) -> None:
    with pytest.raises(ParseError, match="password; save a copy without one"):
        parse_pdf(locked(pdf_bytes("Text."), "secret"), "Stem")


def test_a_file_without_text_is_called_scanned_or_empty(pdf_bytes: PdfBytes) -> None:
    with pytest.raises(ParseError, match="scanned or empty; run OCR"):
        parse_pdf(pdf_bytes("", ""), "Stem")
