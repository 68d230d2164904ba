"""An answer with numbers for ids and a list of its sources: Markdown, with or without footnotes, or plain text."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Literal

from graphrag_agent.citations.parsing import Marker, parse_markers
from graphrag_agent.citations.values import Citation
from graphrag_agent.documents import HEADING_SEPARATOR

QUOTE_CHARACTERS = 300
"""Of each place; a footnote is no second copy of the source."""

_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>#|~!])")
_URL = re.compile(r"https?://[\w.~:/?#@!$&'()*+,;=%-]+", re.ASCII)
_LABELS = {"en": ("p. {}", "Sources"), "ru": ("с. {}", "Источники"), "zh": ("第{}页", "来源")}
Language = Literal["en", "ru", "zh"]


def as_footnotes(text: str, citations: Sequence[Citation], *, language: Language = "en") -> str:
    """Markdown: `[^1]` for each mark, and a footnote for each document with title, places and quotes."""
    numbered = _with_numbers(text, citations, lambda numbers: "".join(f"[^{number}]" for number in numbers))
    notes = [f"[^{number}]: {_document(items, language, _escaped)}" for number, items in _by_number(citations)]
    return "\n\n".join([numbered, "\n".join(notes)]) if notes else numbered


def as_notes(text: str, citations: Sequence[Citation], *, language: Language = "en") -> str:
    """Markdown for readers without footnotes, such as notebooks: `[1]` for each mark, and a numbered list."""
    numbered = _with_numbers(text, citations, _in_brackets)
    notes = [f"{number}. {_document(items, language, _escaped)}" for number, items in _by_number(citations)]
    return "\n\n".join([numbered, "\n".join(notes)]) if notes else numbered


def as_plain(text: str, citations: Sequence[Citation], *, language: Language = "en") -> str:
    """Plain text: `[1]` or `[1, 2]` for each mark, and a numbered list of the documents."""
    numbered = _with_numbers(text, citations, _in_brackets)
    notes = [f"{number}. {_document(items, language, _one_line)}" for number, items in _by_number(citations)]
    return "\n".join([numbered, "", f"{_LABELS[language][1]}:", *notes]) if notes else numbered


def _in_brackets(numbers: list[int]) -> str:
    return f"[{', '.join(map(str, numbers))}]"


def _with_numbers(text: str, citations: Sequence[Citation], render: Callable[[list[int]], str]) -> str:
    number_of = {citation.id: number for number, items in _by_number(citations) for citation in items}
    shown = []
    for piece in parse_markers(text):
        if isinstance(piece, Marker) and (known := [id_ for id_ in piece.ids if id_ in number_of]):
            shown.append(render(list(dict.fromkeys(number_of[id_] for id_ in known))))
        else:
            shown.append(piece.raw if isinstance(piece, Marker) else piece)
    return "".join(shown)


def _by_number(citations: Sequence[Citation]) -> list[tuple[int, list[Citation]]]:
    """The citations of each document, numbered by its first mention."""
    documents: dict[str, list[Citation]] = {}
    for citation in citations:
        documents.setdefault(citation.origin, []).append(citation)
    return list(enumerate(documents.values(), 1))


def _document(citations: Sequence[Citation], language: Language, clean: Callable[[str], str]) -> str:
    """Title and source of the document, then its places, each with what was cited there."""
    first = citations[0]
    title = clean(first.title) or clean(first.source)
    source = f" ({clean(first.source)})" if first.source and first.source != first.title and first.title else ""
    places = [place for citation in citations if (place := _place(citation, language, clean))]
    return f"{title}{source}, {'; '.join(places)}" if places else f"{title}{source}"


def _place(citation: Citation, language: Language, clean: Callable[[str], str]) -> str:
    page = _LABELS[language][0].format(citation.page) if citation.page else ""
    heading = citation.heading.removeprefix(citation.title).removeprefix(HEADING_SEPARATOR)
    told = ", ".join(filter(None, [page, clean(heading)]))
    quoted = _one_line(" … ".join(quote.text for quote in citation.quotes if quote.text))
    if len(quoted) > QUOTE_CHARACTERS:
        quoted = f"{quoted[:QUOTE_CHARACTERS].rsplit(' ', 1)[0]} …"
    return ": ".join(filter(None, [told, f"“{clean(quoted)}”" if quoted else ""]))


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _escaped(text: str) -> str:
    """On one line, with nothing in it that Markdown or HTML would take for its own; a plain URL is a link."""
    line = _one_line(text)
    return f"<{line}>" if _URL.fullmatch(line) else _MARKDOWN.sub(r"\\\1", line).replace("://", ":\u200b//")
