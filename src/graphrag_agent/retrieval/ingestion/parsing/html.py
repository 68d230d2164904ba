"""HTML: the page's own content as Markdown text, without menus, scripts and hidden parts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from graphrag_agent.retrieval.ingestion.parsing.decoding import decode_text
from graphrag_agent.retrieval.ingestion.parsing.markdown import outline
from graphrag_agent.retrieval.ingestion.parsing.parsed_document import ParsedDocument

if TYPE_CHECKING:
    from bs4 import BeautifulSoup
    from bs4.element import Tag

_NOISE = ("script", "style", "nav", "footer", "aside", "template", "noscript", "iframe", "svg", "title")
_HIDDEN = '[hidden], [aria-hidden="true"]'
_INVISIBLE_STYLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_MAIN_SHARE = 0.5
"""The only <main> or <article> stands for the page when it holds more of the text than this."""
_UNCLOSED_PARAGRAPH = re.compile(r"(?=<p[\s>])", re.IGNORECASE)
"""html.parser nests paragraphs that nobody closed, a thousand deep in old pages; a needless end tag does no harm."""
_BLANK_LINES = re.compile(r"\n[ \t]*\n\s*\n")


def parse_html(data: bytes, title: str) -> ParsedDocument:
    """The page as Markdown text (offsets refer to that), titled by <title>, else the first h1."""
    from bs4 import BeautifulSoup

    # a leading doctype keeps the parser from guessing that the text is XML, a file name or an address
    page = BeautifulSoup("<!DOCTYPE html>" + _UNCLOSED_PARAGRAPH.sub("</p>", decode_text(data)), "html.parser")
    named = _words(page.title) or _words(page.h1)
    _drop_noise(page)
    _open_layout_tables(page)
    text = _to_markdown(_content(page))
    return ParsedDocument(text=text, title=named or title, source_type="html", sections=outline(text).sections)


def _drop_noise(page: BeautifulSoup) -> None:
    from bs4.element import PreformattedString

    for tag in [*page.find_all(_NOISE), *page.select(_HIDDEN), *page.find_all(style=_INVISIBLE_STYLE)]:
        if not tag.decomposed and tag.name not in ("html", "body"):
            tag.decompose()
    for unseen in page.find_all(string=lambda found: isinstance(found, PreformattedString)):
        unseen.extract()  # comments, doctype, processing instructions


def _open_layout_tables(page: BeautifulSoup) -> None:
    """Tables around tables arrange a page; read as tables they would end up in one endless row."""
    for table in page.find_all("table"):
        if table.decomposed:
            continue
        if not _words(table):
            table.decompose()
        elif table.find("table"):
            parts = table.find_all(["thead", "tbody", "tr", "td", "th", "caption"])
            for part in [table, *(part for part in parts if part.find_parent("table") is table)]:
                part.name = "div"


def _content(page: BeautifulSoup) -> Tag:
    """The part that stands for the page. Of several none does: the others would be lost."""
    whole = len(_words(page))
    for name in ("main", "article"):
        outermost = [part for part in page.find_all(name) if not part.find_parent(name)]
        if len(outermost) == 1 and len(_words(outermost[0])) > whole * _MAIN_SHARE:
            return outermost[0]
    return page


def _to_markdown(content: Tag) -> str:
    from markdownify import MarkdownConverter

    converter = MarkdownConverter(
        heading_style="ATX",
        bullets="-",
        strip=["a", "img"],  # addresses are noise to a search, and inline images can be megabytes
        escape_asterisks=False,  # identifiers must be found as they are written
        escape_underscores=False,
        table_infer_header=True,
    )
    return _BLANK_LINES.sub("\n\n", str(converter.convert_soup(content)).replace("\xa0", " ")).strip()


def _words(tag: Tag | None) -> str:
    return " ".join(tag.get_text(" ").split()) if tag else ""
