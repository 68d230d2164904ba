"""Which parser reads which file. A new format is one more row in `PARSERS`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from graphrag_agent.errors import ParseError
from graphrag_agent.retrieval.ingestion.parsing.html import parse_html
from graphrag_agent.retrieval.ingestion.parsing.json_records import parse_json, parse_json_lines
from graphrag_agent.retrieval.ingestion.parsing.mail import parse_mail
from graphrag_agent.retrieval.ingestion.parsing.markdown import parse_markdown
from graphrag_agent.retrieval.ingestion.parsing.office import office_parser
from graphrag_agent.retrieval.ingestion.parsing.parsed_document import ParsedDocument
from graphrag_agent.retrieval.ingestion.parsing.pdf import parse_pdf
from graphrag_agent.retrieval.ingestion.parsing.plain_text import parse_plain_text
from graphrag_agent.retrieval.ingestion.parsing.table import parse_table

Parser = Callable[[bytes, str], ParsedDocument]
"""Takes a file's bytes and the title to use where they name none. Its ParseError gives the reason, not the file."""

PARSERS: Mapping[str, Parser] = {
    ".csv": parse_table,
    ".docx": office_parser(".docx"),
    ".eml": parse_mail,
    ".epub": office_parser(".epub"),
    ".htm": parse_html,
    ".html": parse_html,
    ".json": parse_json,
    ".jsonl": parse_json_lines,
    ".markdown": parse_markdown,
    ".md": parse_markdown,
    ".odt": office_parser(".odt"),
    ".pdf": parse_pdf,
    ".pptx": office_parser(".pptx"),
    ".rtf": office_parser(".rtf"),
    ".tsv": parse_table,
    ".txt": parse_plain_text,
    ".xlsx": office_parser(".xlsx"),
}

SUPPORTED_SUFFIXES = frozenset(PARSERS)
"""Lower-case, with the dot."""


def parse_file(path: Path) -> ParsedDocument:
    """The file's text, title and sections. Raises ParseError that names the file and what to do about it."""
    parse = PARSERS.get(path.suffix.lower())
    if parse is None:
        what = f"the suffix {path.suffix!r}" if path.suffix else "a name without suffix"
        known = ", ".join(sorted(SUPPORTED_SUFFIXES))
        raise ParseError(f"{path}: no parser for {what}; convert it to one of {known}")
    data = _read(path)
    try:
        parsed = parse(data, _readable_stem(path))
    except ParseError as error:
        raise ParseError(f"{path}: {error}") from error
    except Exception as error:  # a damaged file can raise anything from a third-party parser
        reason = f"{type(error).__name__}: {error}"[:200]
        raise ParseError(f"{path}: damaged or not what its suffix says ({reason}); open it and save it anew") from error
    if parsed.is_blank:
        raise ParseError(f"{path}: holds no text; add some or leave it out")
    return parsed


def _read(path: Path) -> bytes:
    try:
        if path.is_dir():
            raise ParseError(f"{path}: is a folder, not a file; give its files")
        if path.exists() and not path.is_file():  # reading a pipe or device would never end
            raise ParseError(f"{path}: not a regular file; copy its content into one")
        return path.read_bytes()
    except OSError as error:
        raise ParseError(f"{path}: can't be read ({error.strerror}); check the path and its permissions") from error


def _readable_stem(path: Path) -> str:
    words = " ".join(path.stem.replace("_", " ").replace("-", " ").split()) or path.name
    return words[0].upper() + words[1:]
