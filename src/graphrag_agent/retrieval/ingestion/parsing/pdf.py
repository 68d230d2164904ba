"""PDF: the text layer, one section a page."""

from __future__ import annotations

import io
import logging
from typing import TYPE_CHECKING

from graphrag_agent.errors import ParseError
from graphrag_agent.retrieval.ingestion.parsing.parsed_document import ParsedDocument, Part, Section, join_parts
from graphrag_agent.retrieval.ingestion.parsing.titles import chosen_title
from graphrag_agent.whole_characters import whole_characters

if TYPE_CHECKING:
    from pypdf import PdfReader

_SILENT = logging.NullHandler()


def parse_pdf(data: bytes, title: str) -> ParsedDocument:
    """The pages' text with 1-based pages. Raises ParseError for locked, scanned and damaged files."""
    from pypdf import PdfReader

    # pypdf reports every mended flaw; without a handler of the application that would go to stderr
    logging.getLogger("pypdf").addHandler(_SILENT)
    reader = PdfReader(io.BytesIO(data))
    if reader.is_encrypted and not reader.decrypt(""):
        raise ParseError("protected by a password; save a copy without one")
    pages = [_page_text(reader, number) for number in range(1, len(reader.pages) + 1)]
    if not any(pages):
        raise ParseError("no text in it: scanned or empty; run OCR on it first")
    text, sections = join_parts(
        Part(page, (Section(0, len(page), page=number),) if page else ()) for number, page in enumerate(pages, start=1)
    )
    return ParsedDocument(text=text, title=_own_title(reader, title), source_type="pdf", sections=sections)


def _page_text(reader: PdfReader, number: int) -> str:
    try:
        return _storable(reader.pages[number - 1].extract_text())
    except Exception as error:  # pypdf lets many kinds through from a damaged page
        reason = f"{type(error).__name__}: {error}"[:120]
        raise ParseError(f"page {number} can't be read ({reason}); export the PDF anew") from error


def _own_title(reader: PdfReader, title: str) -> str:
    try:
        return chosen_title(_storable((reader.metadata.title if reader.metadata else None) or ""), title)
    except Exception:  # damaged metadata must not cost the text
        return title


def _storable(text: str) -> str:
    """Without NUL and half surrogates, which fonts without a Unicode table leave behind."""
    return whole_characters(text.replace("\0", "")).strip()
