"""Evidence as it stands in prompts and tool messages, read back into values."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass

_BLOCK = re.compile(r"<evidence((?:\s+\w+=\"[^\"]*\")+)\s*>\n?(.*?)\n?</evidence>", re.DOTALL)
_ATTRIBUTE = re.compile(r"(\w+)=\"([^\"]*)\"")


@dataclass(frozen=True, slots=True)
class EvidenceBlock:
    """One hit as the model reads it."""

    id: str
    title: str
    heading: str
    """Headings above the text, outermost first, joined by " > "; may be empty."""
    page: int | None
    text: str


def parse_evidence(text: str) -> list[EvidenceBlock]:
    """The evidence blocks in the text, in order; what has no id or is cut off is none."""
    blocks = []
    for match in _BLOCK.finditer(text):
        values = {name: html.unescape(value) for name, value in _ATTRIBUTE.findall(match[1])}
        page = values.get("page", "")
        if values.get("id"):
            blocks.append(
                EvidenceBlock(
                    id=values["id"],
                    title=values.get("title", ""),
                    heading=values.get("heading", ""),
                    page=int(page) if page.isdecimal() else None,
                    text=match[2],
                )
            )
    return blocks


def remove_evidence(text: str) -> str:
    """The text without its evidence blocks."""
    return _BLOCK.sub("", text).strip()
