"""The markup that models write tool calls and thoughts in, where it stands in what they are given: there it is none.

A model that quotes a passage must not run what stands in it. So what a model reads has no such markup, and a call that
it writes all the same, word for word as it was given, is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_TOKENS = r"python_(?:tag|end)|eo[mt]_id|im_(?:start|end)|tool▁|(?:begin|end)▁of▁"
_MARKER = re.compile(
    rf"<(?=/?(?:tool_(?:call|result|response)|function=|action>|toolcalls>)|[|｜](?:{_TOKENS})|/think(?:ing)?>[ \t]*$"
    r"|(?<!`<)think(?:ing)?>)|\[(?=/?TOOL_CALLS\])",
    re.IGNORECASE | re.MULTILINE,
)
"""The first character of all that `models/text_tools/dialects.py` reads, and of what would begin or end thoughts: an
answer that began with the one, or quoted the other on a line's end, would be hidden."""


def without_calls(text: str) -> str:
    """The text with no tool call in it, of the same length, so that offsets hold; itself where it has none."""
    return _MARKER.sub(lambda found: "‹" if found[0] == "<" else "［", text)


def is_quoted(call: str, given: Iterable[str]) -> bool:
    """Whether the call stands in one of the texts that the model was given, blanks and broken markup aside."""
    folded = _folded(call)
    return bool(folded) and any(folded in _folded(text) for text in given)


def _folded(text: str) -> str:
    return " ".join(without_calls(text).split())
