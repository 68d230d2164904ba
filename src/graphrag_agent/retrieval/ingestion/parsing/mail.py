"""E-mail: who wrote what to whom and when, then the body; attachments are named, not read."""

from __future__ import annotations

import email
import email.policy
from collections.abc import Iterator
from dataclasses import replace
from email.message import EmailMessage, Message

from graphrag_agent.errors import ParseError
from graphrag_agent.retrieval.ingestion.parsing.decoding import decode_text
from graphrag_agent.retrieval.ingestion.parsing.html import parse_html
from graphrag_agent.retrieval.ingestion.parsing.parsed_document import ParsedDocument, Section
from graphrag_agent.retrieval.ingestion.parsing.titles import chosen_title

_HEADERS = ("Subject", "From", "To", "Cc", "Date")
_HEAD_SEPARATOR = "\n\n"


def parse_mail(data: bytes, title: str) -> ParsedDocument:
    """The headers as lines, a blank line and the body, HTML as Markdown; the title is the subject."""
    message = email.message_from_bytes(data, policy=email.policy.default)
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
    try:
        value = message.get(name, "")
    except Exception:  # the library's parsers of dates and addresses let many kinds through
        value = next((raw for key, raw in message.raw_items() if key.lower() == name.lower()), "")
    # header bytes that are neither ASCII nor declared come as half surrogates
    raw = str(value).encode("utf-8", "surrogateescape")
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        text = decode_text(raw)
    return " ".join(text.split())


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
    try:
        return data.decode(part.get_content_charset() or "utf-8")
    except (UnicodeDecodeError, LookupError):  # the declared charset is wrong or unknown
        return decode_text(data)


def _attachments(message: EmailMessage) -> Iterator[str]:
    for part in message.walk():
        name = part.get_filename()
        if name:
            yield " ".join(name.split())
