"""What a parser finds in a model's text."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Text:
    """Words for the reader, free of markup."""

    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call that the model wrote in full."""

    name: str
    arguments: str
    """A JSON object."""
    raw: str = field(default="", compare=False)
    """As the model wrote it."""


@dataclass(frozen=True, slots=True)
class Malformed:
    """Markup of a call that can't be read as one."""

    raw: str
    reason: str
    """For the model."""


Item: TypeAlias = Text | Call | Malformed
