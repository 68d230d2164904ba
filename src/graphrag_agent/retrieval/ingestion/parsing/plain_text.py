"""Plain text: the file itself; a short line in capitals that stands alone is a heading."""

from __future__ import annotations

import re

from graphrag_agent.retrieval.ingestion.parsing.decoding import decode_text
from graphrag_agent.retrieval.ingestion.parsing.parsed_document import ParsedDocument, Section

_LONE_LINE = re.compile(r"(?:\A|(?<=\n\n)|(?<=\n\r\n))[ \t]*(\S[^\r\n]{2,79})(?=\r?\n[ \t]*\r?\n)")


def parse_plain_text(data: bytes, title: str) -> ParsedDocument:
    """The decoded file as it is; offsets hold in the file."""
    text = decode_text(data)
    sections: list[Section] = []
    position, heading = 0, ""
    for line in _LONE_LINE.finditer(text):
        name = line.group(1).strip()
        if name.isupper() and name[-1].isalnum():
            sections.append(Section(position, line.start(), heading))
            heading, position = name, line.end()
            sections.append(Section(line.start(), line.end(), heading, kind="heading"))
    sections.append(Section(position, len(text), heading))
    return ParsedDocument(
        text=text, title=title, source_type="txt", sections=tuple(s for s in sections if text[s.start : s.end].strip())
    )
