"""E-mail: who wrote what to whom and when, then the body; attachments are named, not read."""

from __future__ import annotations

import email
import email.policy
from collections.abc import Iterator
from dataclasses import replace
from email.errors import HeaderParseError
from email.header import decode_header
from email.message import EmailMessage, Message

from graphrag_agent.errors import ParseError
from graphrag_agent.retrieval.ingestion.parsing.decoding import decode_text
from graphrag_agent.retrieval.ingestion.parsing.html import parse_html
from graphrag_agent.retrieval.ingestion.parsing.parsed_document import ParsedDocument, Section
from graphrag_agent.retrieval.ingestion.parsing.titles import chosen_title

_HEADERS = ("Subject", "From", "To", "Cc", "Date")
_HEAD_SEPARATOR = "\n\n"

MAX_HEADER_CHARS = 2000
"""The rest of an endless list of recipients says nothing."""
MAX_PART_MARKS = 20_000
"""Lines that may begin a part; the library takes seconds for more."""


def parse_mail(data: bytes, title: str) -> ParsedDocument:
    """The headers as lines, a blank line and the body, HTML as Markdown; the title is the subject."""
    if data.count(b"\n--") > MAX_PART_MARKS:
        raise ParseError("has too many parts; save its text as a file")
    try:
        return _document(email.message_from_bytes(data, policy=email.policy.default), title)
    except RecursionError as error:
        raise ParseError("its parts are nested too deep; save its text as a file") from error


def _document(message: EmailMessage, title: str) -> ParsedDocument:
    headers = {name: value for name in _HEADERS if (value := _header(message, name))}
    if not headers:
        raise ParseError("no e-mail in it: it has no headers; give it the suffix of what it is")
    body, sections = _body(message)
    attached = ", ".join(_attachments(message))
    lines = [f"{name}: {value}" for name, value in headers.items()]
    head = "\n".join([*lines, f"Attachments: {attached}"] if attached else lines)
    offset = len(head) + len(_HEAD_SEPARATOR)
    moved = [replace(section, start=section.start + offset, end=section.end + offset) for section in sections]
    return ParsedDocument(
        text=head + _HEAD_SEPARATOR + body if body else head,
        title=chosen_title(headers.get("Subject", ""), title),
        source_type="eml",
        sections=(Section(0, len(head)), *moved),
    )


def _header(message: Message, name: str) -> str:
    """In one line, encoded words decoded. Not by the library's grammar: it takes a minute for a list of addresses."""
    raw = next((str(value) for key, value in message.raw_items() if key.lower() == name.lower()), "")
    try:
        parts = decode_header(" ".join(raw.split()))
    except HeaderParseError:
        parts = [(raw, None)]
    text = " ".join("".join(_decoded(part, charset) for part, charset in parts).split())
    return text if len(text) <= MAX_HEADER_CHARS else text[:MAX_HEADER_CHARS] + "…"


def _decoded(part: str | bytes, charset: str | None) -> str:
    """By the declared charset, and by detection where that is wrong or unknown."""
    # header bytes that are neither ASCII nor declared come as half surrogates
    data = part if isinstance(part, bytes) else part.encode("utf-8", "surrogateescape")
    try:
        return data.decode(charset or "utf-8")
    except (UnicodeError, LookupError):
        return decode_text(data)


def _body(message: EmailMessage) -> tuple[str, tuple[Section, ...]]:
    part = message.get_body(preferencelist=("plain", "html"))
    if part is None:
        return "", ()
    text = _part_text(part)
    if part.get_content_subtype() == "html":
        page = parse_html(text.encode(), "")
        return page.text, page.sections
    text = text.replace("\r\n", "\n").strip()
    return text, (Section(0, len(text)),)


def _part_text(part: Message) -> str:
    data = part.get_payload(decode=True)
    if not isinstance(data, bytes):
        return ""
    return _decoded(data, part.get_content_charset())


def _attachments(message: EmailMessage) -> Iterator[str]:
    for part in message.walk():
        name = part.get_filename()
        if name:
            yield " ".join(name.split())
