"""E-mail: who wrote what to whom and when, then all text that its reader sees; attachments are named, not read."""

from __future__ import annotations

import email
import email.policy
from collections.abc import Iterator, Sequence
from dataclasses import replace
from email.errors import HeaderParseError
from email.header import decode_header
from email.message import EmailMessage, Message
from typing import Literal, NamedTuple

from graphrag_agent.documents import HEADING_SEPARATOR
from graphrag_agent.errors import ParseError
from graphrag_agent.retrieval.ingestion.parsing.decoding import decode_text
from graphrag_agent.retrieval.ingestion.parsing.html import parse_html
from graphrag_agent.retrieval.ingestion.parsing.parsed_document import (
    ParsedDocument,
    Part,
    Section,
    SectionKind,
    join_parts,
)
from graphrag_agent.retrieval.ingestion.parsing.titles import MAX_TITLE_CHARS, chosen_title

_HEADERS = ("Subject", "From", "To", "Cc", "Date")
_FORWARDED_HEADERS = ("Subject", "From", "Date")
_FORWARDED = ("message/rfc822", "message/global")

MAX_HEADER_CHARS = 2000
"""The rest of an endless list of recipients says nothing."""
MAX_PART_MARKS = 20_000
"""Lines that may begin a part; the library takes seconds for more."""
MAX_TEXT_PARTS = 1000
"""Text parts and forwarded messages that are read; HTML takes some milliseconds each."""
MAX_FORWARD_DEPTH = 5
"""Messages inside messages that are read; deeper ones are named like attachments."""


class _Shown(NamedTuple):
    """What the reader of the mail sees: a text part, or a forwarded message, of which this is the heading."""

    part: EmailMessage
    subjects: tuple[str, ...]
    """Of the forwarded messages that it is in, outermost first."""
    text: str
    kind: Literal["plain", "html", "forwarded"]


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
    shown = _shown(message)
    if len(shown) > MAX_TEXT_PARTS:
        raise ParseError("has too many parts; save its text as a file")
    attached = ", ".join(_attachments(message, shown))
    lines = [f"{name}: {value}" for name, value in headers.items()]
    head = "\n".join([*lines, f"Attachments: {attached}"] if attached else lines)
    text, sections = join_parts(
        part for part in [Part(head, (Section(0, len(head)),)), *map(_piece, shown)] if part.text
    )
    return ParsedDocument(
        text=text,
        title=chosen_title(headers.get("Subject", ""), title),
        source_type="eml",
        sections=sections,
    )


def _header(message: Message, name: str, max_chars: int = MAX_HEADER_CHARS) -> str:
    """In one line, encoded words decoded. Not by the library's grammar: it takes a minute for a list of addresses."""
    raw = next((str(value) for key, value in message.raw_items() if key.lower() == name.lower()), "")
    try:
        parts = decode_header(" ".join(raw.split()))
    except HeaderParseError:
        parts = [(raw, None)]
    text = " ".join("".join(_decoded(part, charset) for part, charset in parts).split())
    return text if len(text) <= max_chars else text[:max_chars] + "…"


def _decoded(part: str | bytes, charset: str | None) -> str:
    """By the declared charset, and by detection where that is wrong or unknown."""
    # header bytes that are neither ASCII nor declared come as half surrogates
    data = part if isinstance(part, bytes) else part.encode("utf-8", "surrogateescape")
    try:
        return data.decode(charset or "utf-8")
    except (UnicodeError, LookupError):
        return decode_text(data)


def _shown(part: EmailMessage, subjects: tuple[str, ...] = ()) -> list[_Shown]:
    """In order: text that is no attachment, one of several alternatives, and messages inside the message."""
    if part.is_attachment():
        return []
    kind = part.get_content_type()
    if kind in ("text/plain", "text/html"):
        text = _part_text(part).replace("\r\n", "\n").strip()
        return [_Shown(part, subjects, text, "plain" if kind == "text/plain" else "html")] if text else []
    children = _children(part)
    if kind in _FORWARDED and children and len(subjects) < MAX_FORWARD_DEPTH:
        inside = (*subjects, _header(children[0], "Subject", MAX_TITLE_CHARS))
        return [_Shown(children[0], inside, _forwarded_head(children[0]), "forwarded"), *_shown(children[0], inside)]
    if part.get_content_maintype() != "multipart":
        return []
    found = [_shown(child, subjects) for child in children]
    return _chosen(found) if kind == "multipart/alternative" else [shown for child in found for shown in child]


def _children(part: EmailMessage) -> list[EmailMessage]:
    payload = part.get_payload()
    return [child for child in payload if isinstance(child, EmailMessage)] if isinstance(payload, list) else []


def _chosen(alternatives: Sequence[list[_Shown]]) -> list[_Shown]:
    """The first with plain text, else the first with anything: programs leave one of them blank."""
    plain = (shown for shown in alternatives if any(one.kind == "plain" for one in shown))
    return next(plain, None) or next(filter(None, alternatives), [])


def _forwarded_head(message: Message) -> str:
    values = {name: _header(message, name, MAX_TITLE_CHARS) for name in _FORWARDED_HEADERS}
    return "\n".join(f"{name}: {value}" for name, value in values.items() if value)


def _piece(shown: _Shown) -> Part:
    heading = HEADING_SEPARATOR.join(filter(None, shown.subjects))
    if shown.kind != "html":
        kind: SectionKind = "prose" if shown.kind == "plain" else "heading"
        return Part(shown.text, (Section(0, len(shown.text), heading, kind=kind),))
    page = parse_html(shown.text.encode(), "")
    named = [HEADING_SEPARATOR.join(filter(None, [heading, section.heading])) for section in page.sections]
    sections = [replace(section, heading=name) for section, name in zip(page.sections, named, strict=True)]
    return Part(page.text, tuple(sections))


def _part_text(part: Message) -> str:
    data = part.get_payload(decode=True)
    if not isinstance(data, bytes):
        return ""
    return _decoded(data, part.get_content_charset())


def _attachments(message: EmailMessage, shown: Sequence[_Shown]) -> Iterator[str]:
    """Names of files, and subjects of messages that have none and are not read."""
    read = {id(one.part) for one in shown}
    for part in message.walk():
        name = part.get_filename()
        if not name and isinstance(part, EmailMessage) and part.get_content_type() in _FORWARDED:
            unread = [child for child in _children(part) if id(child) not in read]
            name = _header(unread[0], "Subject", MAX_TITLE_CHARS) or "message" if unread else None
        if name:
            yield " ".join(name.split())
