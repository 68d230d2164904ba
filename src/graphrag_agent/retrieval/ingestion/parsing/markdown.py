"""Markdown: the file itself, cut into sections at headings, fences and tables.

Nothing is rewritten, so offsets hold in the file. Addresses of links that are listed apart, which no reader of the
rendered page sees, are in no section. `outline` is also used for HTML and Office files turned into Markdown; what looks
like such an address there is text that readers see.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from graphrag_agent.documents import HEADING_SEPARATOR
from graphrag_agent.retrieval.ingestion.parsing.decoding import decode_text
from graphrag_agent.retrieval.ingestion.parsing.parsed_document import ParsedDocument, Section, SectionKind

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

MAX_HEADING_CHARS = 200
"""Longer lines are a paragraph that somebody underlined; they stay prose."""

_FRONT_MATTER = re.compile(
    r"---[ \t]*(?:\r\n?|\n)(?=[\w\"'-]+[ \t]*:).*?^(?:---|\.\.\.)[ \t]*(?:\r\n?|\n|\Z)", re.DOTALL | re.MULTILINE
)
_FRONT_TITLE = re.compile(r"^title[ \t]*:[ \t]*(?![>|])(.+?)[ \t\r]*$", re.MULTILINE)
_LINE_END = re.compile(r"\r\n?|\n")
_BLOCKS: dict[str, SectionKind] = {
    "heading_open": "heading",
    "fence": "code",
    "code_block": "code",
    "table_open": "table",
}
_ADDRESS = re.compile(r"[/#:@?]|[\w%]\.\w")
"""What an address has and a lone word seldom: /faq, #top, mailto:a, guide.md."""


class Outline(NamedTuple):
    """The sections of a Markdown text and its first top heading ("" without one)."""

    sections: tuple[Section, ...]
    first_heading: str


class _Block(NamedTuple):
    start: int
    end: int
    kind: SectionKind | None
    """None for what is in no section."""
    level: int = 0
    name: str = ""


def parse_markdown(data: bytes, title: str) -> ParsedDocument:
    """The decoded file, its sections, and the title: front matter's, else the first H1, else the given one."""
    text = decode_text(data)
    front = _FRONT_MATTER.match(text)
    body_start = front.end() if front else 0
    found = outline(text, start=body_start, hides_addresses=True)
    named = _front_title(front.group()) if front else ""
    return ParsedDocument(
        text=text, title=named or found.first_heading or title, source_type="md", sections=found.sections
    )


def outline(text: str, *, start: int = 0, hides_addresses: bool = False) -> Outline:
    """Sections of the Markdown text from `start` on; headings inside fences, quotes and lists don't count."""
    sections: list[Section] = []
    path: list[tuple[int, str]] = []
    first_heading = ""
    position = start
    for block in [*_blocks(text, start, hides_addresses=hides_addresses), _Block(len(text), len(text), "prose")]:
        above = HEADING_SEPARATOR.join(name for _, name in path)
        if text[position : block.start].strip():
            sections.append(Section(position, block.start, above))
        if block.kind == "heading":
            path = [entry for entry in path if entry[0] < block.level] + [(block.level, block.name)]
            above = HEADING_SEPARATOR.join(name for _, name in path)
            if block.level == 1 and not first_heading:
                first_heading = block.name
        if block.end > block.start and block.kind:
            sections.append(Section(block.start, block.end, above, kind=block.kind))
        position = block.end
    return Outline(tuple(sections), first_heading)


def _blocks(text: str, start: int, *, hides_addresses: bool) -> Iterator[_Block]:
    from markdown_it import MarkdownIt

    # inline parsing is the slow half, and only headings need it
    parser = MarkdownIt("commonmark").enable("table").disable("inline")
    inline = MarkdownIt("commonmark")
    lines = _line_starts(text, start)
    links: dict[str, Any] = {}
    tokens = parser.parse(text[start:], links)
    found = [*_blocks_of(tokens, text, lines, inline)]
    if hides_addresses:
        found += _listed_addresses(links, lines)
    position = start
    for block in sorted(found, key=lambda block: block.start):
        if block.start >= position:
            yield block
            position = block.end


def _blocks_of(tokens: Sequence[Token], text: str, lines: Sequence[int], inline: MarkdownIt) -> Iterator[_Block]:
    for at, token in enumerate(tokens):
        kind = _BLOCKS.get(token.type)
        if kind is None or token.map is None or (kind == "heading" and token.level):
            continue
        begin, end = lines[token.map[0]], lines[min(token.map[1], len(lines) - 1)]
        name = _heading_name(tokens[at + 1], inline) if kind == "heading" else ""
        if kind == "heading" and not _is_heading(text[begin:end], name):
            continue
        yield _Block(begin, end, kind, int(token.tag[1]) if kind == "heading" else 0, name)


def _listed_addresses(links: Mapping[str, Any], lines: Sequence[int]) -> Iterator[_Block]:
    listed = [
        *links.get("references", {}).items(),
        *((link["label"], link) for link in links.get("duplicate_refs", ())),
    ]
    for label, link in listed:
        # else a footnote of one word, or words of a chat ("[Ann]: Yes"), which only Markdown's rules take for a link
        if not label.startswith("^") and _ADDRESS.search(link["href"]):
            first, last = link["map"]
            yield _Block(lines[first], lines[min(last, len(lines) - 1)], None)


def _is_heading(lines: str, name: str) -> bool:
    return bool(name) and len(lines.strip()) <= MAX_HEADING_CHARS


def _heading_name(token: Token, inline: MarkdownIt) -> str:
    parsed = inline.parseInline(token.content)
    return " ".join("".join(_plain(child) for child in parsed[0].children or ()).split())


def _plain(token: Token) -> str:
    if token.type in ("softbreak", "hardbreak"):
        return " "
    return "" if token.type == "html_inline" else token.content


def _line_starts(text: str, start: int) -> Sequence[int]:
    """Offset of every line as markdown-it counts them, and of the text's end."""
    starts = [start, *(found.end() for found in _LINE_END.finditer(text, start))]
    return starts if starts[-1] == len(text) else [*starts, len(text)]


def _front_title(front_matter: str) -> str:
    found = _FRONT_TITLE.search(front_matter)
    return found.group(1).strip().strip("\"'").strip() if found else ""
