"""Whether the title that a file names in its metadata is one."""

from __future__ import annotations

import re

MAX_TITLE_CHARS = 200

_TOOL_TITLE = re.compile(
    r"\(?(?:untitled(?: document)?|anonymous|unspecified|document\d*|powerpoint presentation|microsoft \w+ - .*)\)?"
    r"|.*\.(?:docx?|pptx?|xlsx?|indd|tex|dvi|pdf|qxd|rtf|odt)",
    re.IGNORECASE,
)
"""Titles that programs make up; the file's name says more."""


def chosen_title(named: str, fallback: str) -> str:
    """The named title in one line, or the fallback where a program made it up, or it is blank or endless."""
    named = " ".join(named.split())
    return fallback if not named or len(named) > MAX_TITLE_CHARS or _TOOL_TITLE.fullmatch(named) else named
