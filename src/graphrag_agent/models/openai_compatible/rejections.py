"""Does an error say that the model or its server takes no tools? Then another protocol may still get an answer."""

from __future__ import annotations

import re
from typing import Any

STATUSES = frozenset({400, 404, 405, 422, 500, 501})
"""400 from most; 404 from routers that find no provider, 422 from strict servers, 500 from llama.cpp and Qwen's."""

TOOLS = r"(?:tools?|tool[_ -]?(?:choice|calls?|calling|use)|functions?(?:[_ -]?call(?:s|ing)?)?)"
NO = r"(?:not? support(?:ed|s)?|n't support(?:ed)?|unsupported|not (?:permitted|allowed|available|enabled|implemented))"
MUST_BE_SWITCHED_ON = r"requires? (?:the )?`?--(?:enable-auto-tool-choice|jinja|tool-call-parser)"

PATTERNS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b{TOOLS}\b[^.]{{0,60}}\b(?:is|are|was|were)?\s*{NO}",
        rf"(?:does|do|is|are) {NO}[^.]{{0,40}}\b{TOOLS}\b",
        rf"doesn't support[^.]{{0,40}}\b{TOOLS}\b",
        rf"{NO} (?:param(?:eter)?|argument|value)s?:? *['\"`]?{TOOLS}\b",
        rf"no (?:endpoints?|providers?|connected provider)[^.]{{0,30}}supports? {TOOLS}\b",
        rf"(?:unrecognized|unknown|unexpected|extra)[^.]{{0,60}}['\"`]?{TOOLS}['\"`]?",
        r"['\"(\[](?:tools|tool_choice|functions)['\"\])][^.]{0,80}extra inputs are not permitted",
        MUST_BE_SWITCHED_ON,
    )
)

OTHER = re.compile(r"failed_generation|tool_use_failed|tool_call_id|must be a response|must be followed|schema|context")
"""Errors that name tools and mean something else: a bad call, a broken history, a bad schema, too long a prompt."""


def is_tools_rejection(error: BaseException) -> bool:
    """Whether the request was refused because it had tools in it."""
    status = getattr(error, "status_code", None)
    if status is not None and status not in STATUSES:
        return False
    if status is None and not hasattr(error, "body"):
        return False
    text = f"{error} {_text(getattr(error, 'body', None))}"
    return not OTHER.search(text) and any(pattern.search(text) for pattern in PATTERNS)


def _text(body: Any) -> str:
    return "" if body is None else str(body)
