"""What a model thinks aloud in its text, between tags."""

from __future__ import annotations

import re

_THOUGHTS = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)


def without_thoughts(text: str) -> str:
    """The text without them, also where it broke off among them."""
    return _THOUGHTS.sub("", text).strip()
