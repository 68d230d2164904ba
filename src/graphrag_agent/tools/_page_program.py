"""The program of a worker process: a web page or a PDF to its text, title and links.

A request's name is JSON about its bytes (`media_type`, `charset`, `url`); `_page_reading.py` reads the answer. Pages
are hostile: some make a parser hang or crash, so nobody but this process, which can be killed, parses them.
"""

from __future__ import annotations

import codecs
import json
import re
from itertools import islice
from typing import Any
from urllib.parse import urljoin

from graphrag_agent.errors import ParseError
from graphrag_agent.retrieval.ingestion.parsing.decoding import decode_text
from graphrag_agent.retrieval.ingestion.parsing.pdf import parse_pdf
from graphrag_agent.retrieval.ingestion.workers.program import main

PDF = "application/pdf"
HTML = frozenset({"text/html", "application/xhtml+xml"})
MAX_LINKS = 200
_BOMS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_META_CHARSET = re.compile(rb"""<meta[^>]{0,200}charset\s*=\s*["']?([\w.:+-]{1,40})""", re.IGNORECASE)
_META_BYTES = 4096
_AS_BROWSERS_READ = {
    **dict.fromkeys(("ascii", "iso8859-1"), "cp1252"),
    **dict.fromkeys(("gb2312", "gbk"), "gb18030"),
}
"""Under the names that Python gives to its codecs, as below."""
_NO_CHARSETS = frozenset({"idna", "punycode", "unicode-escape", "raw-unicode-escape", "utf-7", "undefined"})
"""Python decodes these too; pages never mean them, and some take quadratic time."""
_LOST_SHARE = 0.01
"""More bytes than this that fit no character mean that the charset is a wrong one."""
_UNSEEN = "//script|//style|//template|//noscript|//*[@hidden or @aria-hidden='true']"
_INVISIBLE_STYLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_BESIDE_THE_TEXT = ("nav", "footer", "aside", "header")
_MAX_ANCHORS = 2000
_MAX_ELEMENTS = 30_000
"""Finding the main text takes more than linear time; a page of more elements is taken whole."""
_BLOCKS = ("br", "p", "div", "li", "tr", "dt", "dd", "pre", "blockquote", "h1", "h2", "h3", "h4", "h5", "h6")
_BLANK_LINES = re.compile(r"\n\s*\n\s*\n+")


def answer_page(name: str, data: bytes) -> bytes:
    """One line of JSON: `title`, `text` and `links`, or an `error`."""
    about = json.loads(name)
    try:
        found = _read(about["media_type"], about["charset"], about["url"], data)
    except ParseError as error:
        found = {"error": str(error)}
    except MemoryError:
        found = {"error": "needs more than 1 GB of memory"}
    except Exception as error:  # a damaged page can raise anything from a third-party parser
        found = {"error": f"damaged ({type(error).__name__})"}
    return json.dumps(found, ensure_ascii=False).encode("utf-8", "replace")


def _read(media_type: str, charset: str, url: str, data: bytes) -> dict[str, Any]:
    if media_type == PDF:
        parsed = parse_pdf(data, "")
        return {"title": parsed.title, "text": parsed.text, "links": []}
    text = _decoded(data, charset)
    if media_type not in HTML:
        return {"title": "", "text": text, "links": []}
    return _read_html(text, url)


def _decoded(data: bytes, charset: str) -> str:
    """By BOM, by what the server or the page says, else by what the bytes look like."""
    if not data.startswith(_BOMS):
        meta = _META_CHARSET.search(data[:_META_BYTES])
        for label in (charset, meta[1].decode("ascii", "replace") if meta else ""):
            text = _decoded_as(data, label)
            if text is not None:
                return text
    try:
        return decode_text(data)
    except ParseError:  # a cut page may end within a character
        text = data.decode("utf-8", "replace")
        if text.count("�") > _LOST_SHARE * len(text) + 1:
            raise
        return text


def _decoded_as(data: bytes, label: str) -> str | None:
    try:
        name = codecs.lookup(label).name  # whatever it is called
        if name in _NO_CHARSETS:
            return None
        text = data.decode(_AS_BROWSERS_READ.get(name, name), "replace")
    except (LookupError, ValueError):
        return None
    return text if text.count("�") <= _LOST_SHARE * len(text) + 1 else None


def _read_html(text: str, url: str) -> dict[str, Any]:
    import trafilatura
    from lxml.etree import LxmlError  # type: ignore[import-untyped]  # it has no types
    from lxml.html import HTMLParser, document_fromstring  # type: ignore[import-untyped]
    from trafilatura.settings import use_config

    try:
        page: Any = document_fromstring(text.encode("utf-8", "replace"), parser=HTMLParser(encoding="utf-8"))
    except LxmlError as error:
        raise ParseError("it holds no HTML that can be read") from error
    title = _words(page.findtext(".//title")) or _words(page.findtext(".//h1"))
    styled = [part for part in page.xpath("//*[@style]") if _INVISIBLE_STYLE.search(part.get("style"))]
    for unseen in [*page.xpath(_UNSEEN), *styled]:
        if unseen.getparent() is not None:
            unseen.drop_tree()
    found = {"title": title, "links": _links(page, url)}
    main_text = None
    if sum(1 for _ in page.iter()) <= _MAX_ELEMENTS:
        # it takes short texts for failures and would lose their headings and tables
        config = use_config()
        config.set("DEFAULT", "MIN_EXTRACTED_SIZE", "10")
        config.set("DEFAULT", "MIN_OUTPUT_SIZE", "1")
        main_text = trafilatura.extract(
            page, output_format="markdown", include_comments=False, include_formatting=True, config=config
        )
    return {**found, "text": main_text or _whole_text(page)}


def _whole_text(page: Any) -> str:
    for named in page.findall(".//title"):
        named.drop_tree()
    for block in page.iter(*_BLOCKS):
        block.text = "\n" + (block.text or "")
        block.tail = "\n" + (block.tail or "")
    return _BLANK_LINES.sub("\n\n", page.text_content()).strip()


def _links(page: Any, url: str) -> list[list[str]]:
    """Text and URL of the links, those of menus only where there are no others."""
    base = page.find(".//base[@href]")
    start = url if base is None else _joined(url, base.get("href")) or url
    anchors = [anchor for anchor in islice(page.iter("a"), _MAX_ANCHORS) if anchor.get("href")]
    in_text = [anchor for anchor in anchors if next(anchor.iterancestors(*_BESIDE_THE_TEXT), None) is None]
    found: dict[str, str] = {}
    for anchor in in_text or anchors:
        target = _joined(start, anchor.get("href"))
        if target.startswith(("http://", "https://")) and target != url:
            found.setdefault(target, _words(anchor.text_content()))
        if len(found) == MAX_LINKS:
            break
    return [[words, target] for target, words in found.items()]


def _joined(base: str, link: str) -> str:
    try:
        return urljoin(base, link.strip()).partition("#")[0]
    except ValueError:
        return ""


def _words(text: str | None) -> str:
    return " ".join((text or "").split())


if __name__ == "__main__":
    main(answer_page)
