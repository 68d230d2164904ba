"""Plain text: the file itself, one section."""

from __future__ import annotations

from graphrag_agent.retrieval.ingestion.parsing.decoding import decode_text
from graphrag_agent.retrieval.ingestion.parsing.parsed_document import ParsedDocument, Section


def parse_plain_text(data: bytes, title: str) -> ParsedDocument:
    """The decoded file as it is; offsets hold in the file."""
    text = decode_text(data)
    return ParsedDocument(text=text, title=title, source_type="txt", sections=(Section(0, len(text)),))
