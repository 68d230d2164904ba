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
from graphrag_agent.retrieval.ingestion.parsing.parquet import parse_parquet
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
    ".parquet": parse_parquet,
    ".pdf": parse_pdf,
    ".pptx": office_parser(".pptx"),
    ".rtf": office_parser(".rtf"),
    ".tsv": parse_table,
    ".txt": parse_plain_text,
    ".xlsx": office_parser(".xlsx"),
}

SUPPORTED_SUFFIXES = frozenset(PARSERS)
"""Lower-case, with the dot."""


MAX_FILE_BYTES = 400_000_000
"""What a parser can hold beside its own data in 1 GB."""


def parse_file(path: Path) -> ParsedDocument:
    """The file's text, title and sections, read in this process: for files that are trusted.

    Raises ParseError that names the file and what to do about it.
    """
    check_readable(path)
    try:
        return parse_data(path.name, path.read_bytes())
    except ParseError as error:
        raise ParseError(f"{path}: {error}") from error


def parse_data(name: str, data: bytes) -> ParsedDocument:
    """The same for the bytes of a file with that name. Its ParseError doesn't name the file."""
    try:
        parsed = PARSERS[Path(name).suffix.lower()](data, _readable_stem(Path(name)))
    except (ParseError, MemoryError):
        raise
    except Exception as error:  # a damaged file can raise anything from a third-party parser
        reason = f"{type(error).__name__}: {error}"[:200]
        raise ParseError(f"damaged or not what its suffix says ({reason}); open it and save it anew") from error
    if parsed.is_blank:
        raise ParseError("holds no text; add some or leave it out")
    return parsed


def check_readable(path: Path) -> None:
    """Raises ParseError, which names the path, unless there is a parser for it and it is a file of fair size."""
    if path.suffix.lower() not in PARSERS:
        what = f"the suffix {path.suffix!r}" if path.suffix else "a name without suffix"
        known = ", ".join(sorted(SUPPORTED_SUFFIXES))
        raise ParseError(f"{path}: no parser for {what}; convert it to one of {known}")
    try:
        if path.is_dir():
            raise ParseError(f"{path}: is a folder, not a file; give its files")
        if path.exists() and not path.is_file():  # reading a pipe or device would never end
            raise ParseError(f"{path}: not a regular file; copy its content into one")
        if path.stat().st_size > MAX_FILE_BYTES:
            raise ParseError(f"{path}: larger than {MAX_FILE_BYTES // 1_000_000} MB; split it into smaller files")
        with path.open("rb"):
            pass
    except OSError as error:
        raise ParseError(f"{path}: can't be read ({error.strerror}); check the path and its permissions") from error


def _readable_stem(path: Path) -> str:
    words = " ".join(path.stem.replace("_", " ").replace("-", " ").split()) or path.name
    return words[0].upper() + words[1:]
