"""How a passage stands in a text that a model reads: in a tag with its id, which no passage can open or close.

Nor can it hold a tool call.
"""

from __future__ import annotations

import html
import re

from graphrag_agent.call_markup import without_calls

CLOSING_TAG = "</evidence>"
_TAG = re.compile(r"<(?=/?evidence)", re.IGNORECASE)


def opening_tag(*, id_: str, title: str, heading: str, page: int | None, note: str = "") -> str:
    """The tag in front of a passage, on one line; what is empty is left out. `note`: what the passage lacks."""
    shown: dict[str, object] = {"id": id_, "title": title, "heading": heading, "page": page or "", "note": note}
    attributes = (f' {name}="{html.escape(" ".join(str(value).split()))}"' for name, value in shown.items() if value)
    return f"<evidence{''.join(attributes)}>"


def without_tags(text: str) -> str:
    """The passage with no such tag and no tool call in it, of the same length, so that offsets hold."""
    return without_calls(_TAG.sub("‹", text))


def storable(text: str) -> str:
    """The text without what a database or JSON can't hold: NUL, and halves of surrogate pairs."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()
