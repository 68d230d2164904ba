"""Text that can be sent and stored: models and clients may write half of a character that takes two."""

from __future__ import annotations


def whole_characters(text: str) -> str:
    """The text with halves of a character joined where both are there, and replaced by "�" where one is alone."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
