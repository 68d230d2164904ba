"""Word, PowerPoint, Excel, RTF, OpenDocument text and EPUB, read by kreuzberg.

Slides and sheets are pages. A sheet's rows are lines of "column: value"; all else is Markdown text, and offsets refer
to that.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from graphrag_agent.errors import ParseError
from graphrag_agent.retrieval.ingestion.parsing.markdown import outline
from graphrag_agent.retrieval.ingestion.parsing.office_extraction import extract as extract_office
from graphrag_agent.retrieval.ingestion.parsing.parsed_document import (
    PART_SEPARATOR,
    ParsedDocument,
    Part,
    Section,
    join_parts,
)
from graphrag_agent.retrieval.ingestion.parsing.table import table_lines
from graphrag_agent.retrieval.ingestion.parsing.titles import chosen_title

Extract = Callable[[str, bytes], dict[str, Any]]
"""Suffix and data to title and pages, as `office_extraction.extract` gives them."""

_LINK = re.compile(r"!?\[([^\[\]\n]*)\]\((?:[^()\\\s]|\\.|\([^()\s]*\))*(?:\s+\"[^\"\n]*\")?\)")
_ESCAPE = re.compile(r"(?<=[^\n\\])\\([!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{}~])")
"""Not at a line's start, where it keeps text from being structure, nor before the bar of a table."""
_INVISIBLE = re.compile("[\0\ufeff\u00ad]")
_BLANK_LINES = re.compile(r"\n[ \t]*\n\s*\n")
_MIDNIGHT = re.compile(r"(\d{4}-\d\d-\d\d) 00:00:00")


class _Page(NamedTuple):
    part: Part
    opening_heading: str = ""
    """The first heading, if nothing comes before it."""


def office_parser(suffix: str, extract: Extract = extract_office) -> Callable[[bytes, str], ParsedDocument]:
    """A parser of files with that suffix; `source_type` is the suffix without its dot."""
    read_page = _sheet if suffix == ".xlsx" else _prose

    def parse(data: bytes, title: str) -> ParsedDocument:
        if importlib.util.find_spec("kreuzberg") is None:
            raise ParseError(f"{suffix} needs an extra; run pip install 'graphrag-agent[docs]'")
        answer = extract(suffix, data)
        pages = [read_page(page) for page in answer["pages"]]
        heading = pages[0].opening_heading if pages else ""
        named = chosen_title(answer["title"], heading or title)
        text, sections = join_parts(page.part for page in pages)
        return ParsedDocument(text=text, title=named, source_type=suffix.removeprefix("."), sections=sections)

    return parse


def _prose(page: dict[str, Any]) -> _Page:
    text = _readable(page["text"])
    if page.get("notes"):
        text = f"{text}{PART_SEPARATOR}Notes: {_readable(page['notes'])}".strip()
    found = outline(text)
    sections = tuple(replace(section, page=page.get("number")) for section in found.sections)
    opens = bool(sections) and sections[0].kind == "heading"
    return _Page(Part(text, sections), sections[0].heading if opens else "")


def _readable(markdown: str) -> str:
    """Without addresses of links, and identifiers as they were written, not escaped."""
    text = _LINK.sub(r"\1", _INVISIBLE.sub("", markdown).replace("\xa0", " "))
    return _BLANK_LINES.sub("\n\n", _ESCAPE.sub(r"\1", text)).strip()


def _sheet(page: dict[str, Any]) -> _Page:
    rows = [[_MIDNIGHT.sub(r"\1", _INVISIBLE.sub("", cell)) for cell in row] for row in page["rows"]]
    text = "\n".join(table_lines(rows))
    name = " ".join(page["name"].split())
    return _Page(Part(text, (Section(0, len(text), name, page["number"], "table"),)))
