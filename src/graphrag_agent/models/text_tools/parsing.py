"""From a model's text to words for the reader and tool calls, piece by piece: `ToolCallParser`.

How the text is cut doesn't change the result. What may be the beginning of markup is kept back until it is decided.
Code in Markdown (fenced, inline) and `<think>` blocks are text, whatever they contain: there the model shows an
example, or weighs a call that it may not make.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from graphrag_agent.models.text_tools.bare_json import may_be_bare_call, read_bare_calls
from graphrag_agent.models.text_tools.dialects import AFTER_CALL, READERS, STRAY
from graphrag_agent.models.text_tools.items import Item, Malformed, Text
from graphrag_agent.models.text_tools.json_bodies import CUT_OFF, JsonScan

TELLING_CHARACTERS = 6
"""A marker that the end of the text cuts off is markup from this length on (`<tool_`), shorter it's text (`a <t`)."""

MAX_PREFIX_CHARACTERS = 40
"""More than any list or quote marks before a code fence."""

_THINK, _END_OF_THINK = "<think>", "</think>"
_MARKERS = (*READERS, *STRAY, _THINK)
_NOTABLE = re.compile(r"[<\[`~\n]")
_TICKS = re.compile(r"`+")
_FENCE_PREFIX = re.compile(r"(?:[ \t>*+-]|\d+[.)])*")
_EXTRA_CLOSERS = re.compile(r"\s*[}\]]+")
_MAY_END_MARKUP = frozenset("}]>\n")


class ToolCallParser:
    """Reads one message. Feed it pieces, close it, and join what it gives."""

    def __init__(self, tool_names: Collection[str] = ()) -> None:
        """Names matter only for calls without markup: JSON that names no offered tool is text."""
        self._names = frozenset(tool_names)
        self._buffer = ""
        self._items: list[Item] = []
        self._is_start = bool(tool_names)
        self._scan: JsonScan | None = None
        self._is_thinking = False
        self._fence = ""
        self._ticks = 0
        self._line = ""
        self._blank = ""
        self._blank_before_call = ""
        self._has_spoken = False
        self._is_after_call = False

    def feed(self, piece: str) -> list[Item]:
        """What this piece decides."""
        self._buffer += piece
        if self._scan is not None:
            self._scan.feed(piece)
            if self._scan.is_open or _MAY_END_MARKUP.isdisjoint(piece):
                return []  # reading a long call anew for each token would cost the square of its length
        return self._advance(is_whole=False)

    def close(self) -> list[Item]:
        """What was kept back, now that no more text comes."""
        items = self._advance(is_whole=True)
        if self._blank and not self._is_after_call:
            items = _join([*items, Text(self._blank)])
        self._blank = ""
        return items

    def _advance(self, *, is_whole: bool) -> list[Item]:
        while self._buffer and self._step(is_whole):
            pass
        items, self._items = _join(self._items), []
        return items

    def _step(self, is_whole: bool) -> bool:
        """Whether something was decided."""
        if self._is_start:
            return self._step_at_start(is_whole)
        if self._fence:
            return self._step_in_fence(is_whole)
        if self._is_thinking:
            return self._step_in_thought(is_whole)
        if self._is_after_call and (decided := self._drop_closers(is_whole)) is not None:
            return decided
        return self._step_in_text(is_whole)

    def _step_at_start(self, is_whole: bool) -> bool:
        if may_be_bare_call(self._buffer.lstrip(), self._names):
            if not is_whole:
                return False
            if (items := read_bare_calls(self._buffer.strip(), self._names)) is not None:
                self._items += items
                self._buffer = ""
                self._is_after_call = True
        self._is_start = False
        return True

    def _step_in_fence(self, is_whole: bool) -> bool:
        end = self._buffer.find("\n") + 1
        line = self._buffer[: end or None]
        may_close = not self._line and re.fullmatch(rf"[ \t>]*{self._fence[0]}*[ \t\r]*\n?", line)
        if may_close and not end and not is_whole:
            return False
        if may_close and self._fence in line:
            self._fence = ""
        self._say(len(line))
        return True

    def _step_in_thought(self, is_whole: bool) -> bool:
        end = self._buffer.find(_END_OF_THINK)
        if end >= 0:
            self._is_thinking = False
            self._say(end + len(_END_OF_THINK))
            return True
        kept = 0 if is_whole else _overlap(self._buffer, _END_OF_THINK)
        self._say(len(self._buffer) - kept)
        return False

    def _drop_closers(self, is_whole: bool) -> bool | None:
        """Drop what models leave behind a call; None where there is nothing of the kind."""
        if extra := _EXTRA_CLOSERS.match(self._buffer):
            return self._drop_stray(extra.end())
        rest = self._buffer.lstrip()
        for closer in AFTER_CALL:
            if rest.startswith(closer):
                return self._drop_stray(len(self._buffer) - len(rest) + len(closer))
        is_cut = rest.startswith("<") and any(closer.startswith(rest) for closer in AFTER_CALL)
        if not is_cut or (is_whole and rest == "<"):
            return None
        return is_whole and self._drop_stray(len(self._buffer))

    def _step_in_text(self, is_whole: bool) -> bool:
        found = _NOTABLE.search(self._buffer)
        if found is None or found.start():
            self._say(found.start() if found else len(self._buffer))
            return True
        if found[0] in "`~":
            return self._step_at_code(is_whole)
        if found[0] == "\n":
            self._ticks = 0
            self._say(1)
            return True
        return self._step_at_marker(is_whole)

    def _step_at_code(self, is_whole: bool) -> bool:
        run = len(self._buffer) - len(self._buffer.lstrip(self._buffer[0]))
        if run == len(self._buffer) and not is_whole:
            return False
        if run >= 3 and not self._ticks and _FENCE_PREFIX.fullmatch(self._line):
            end = self._buffer.find("\n")
            is_inline = self._buffer[0] == "`" and "`" in self._buffer[run : None if end < 0 else end]
            if end < 0 and not is_inline and not is_whole:
                return False
            if end >= 0 and not is_inline:
                self._fence = self._buffer[:run]
                self._say(end + 1)
                return True
        if self._buffer[0] == "`":
            self._ticks = {0: run, run: 0}.get(self._ticks, self._ticks)
        self._say(run)
        return True

    def _step_at_marker(self, is_whole: bool) -> bool:
        marker = next((marker for marker in _MARKERS if self._buffer.startswith(marker)), "")
        if not marker:
            is_cut = any(marker.startswith(self._buffer) for marker in _MARKERS)
            if is_cut and not is_whole:
                return False
            return self._end_at_cut_marker() if is_cut and len(self._buffer) >= TELLING_CHARACTERS else self._say(1)
        if self._ticks:
            return self._step_at_marker_in_code(is_whole)
        if marker == _THINK:
            self._is_thinking = True
            return self._say(len(_THINK))
        if marker in STRAY:
            return self._drop_stray(len(marker))
        reading = READERS[marker](self._buffer, is_whole)
        if reading is None:
            if self._scan is None:
                self._scan = JsonScan()
                self._scan.feed(self._buffer[len(marker) :])
            return False
        self._scan = None
        if reading.items and isinstance(reading.items[0], Text):
            return self._say(reading.end)
        self._items += reading.items
        self._drop(reading.end)
        if reading.items:
            self._is_after_call, self._blank_before_call = True, self._blank
        return True

    def _step_at_marker_in_code(self, is_whole: bool) -> bool:
        """A marker behind a backtick is text if the backtick is closed in this line."""
        line, newline, _ = self._buffer.partition("\n")
        close = next((run for run in _TICKS.finditer(line) if len(run[0]) == self._ticks), None)
        is_certain = bool(newline) or is_whole
        if close and (is_certain or close.end() < len(line)):
            self._ticks = 0
            return self._say(close.end())
        if is_certain:
            self._ticks = 0
        return is_certain

    def _end_at_cut_marker(self) -> bool:
        if any(marker.startswith(self._buffer) for marker in READERS):
            self._items.append(Malformed(self._buffer, CUT_OFF))
            self._is_after_call = True
        return self._drop(len(self._buffer))

    def _drop(self, length: int) -> bool:
        self._line = (self._line + "<")[:MAX_PREFIX_CHARACTERS]
        self._buffer = self._buffer[length:]
        if not self._has_spoken:
            self._blank = ""
        return True

    def _drop_stray(self, length: int) -> bool:
        """Drop markup that means nothing; the blanks between a call and its end tag are markup too."""
        if self._is_after_call:
            self._blank = self._blank_before_call
        return self._drop(length)

    def _say(self, length: int) -> bool:
        """Give so many characters to the reader, except for blanks beside a call, which no one sees."""
        said, self._buffer = self._buffer[:length], self._buffer[length:]
        last_line = said.rpartition("\n")
        self._line = (last_line[2] if last_line[1] else self._line + said)[:MAX_PREFIX_CHARACTERS]
        said = self._blank + said
        if self._is_after_call and not self._has_spoken:
            said = said.lstrip()
        spoken = said.rstrip()
        self._blank = said[len(spoken) :]
        if spoken:
            self._items.append(Text(spoken))
            self._has_spoken, self._is_after_call = True, False
        return True


def parse_text(text: str, tool_names: Collection[str] = ()) -> list[Item]:
    """The items of a whole message."""
    parser = ToolCallParser(tool_names)
    return _join([*parser.feed(text), *parser.close()])


def _join(items: list[Item]) -> list[Item]:
    return list(_joined(items))


def _joined(items: list[Item]) -> Iterator[Item]:
    text = ""
    for item in items:
        if isinstance(item, Text):
            text += item.text
            continue
        if text:
            yield Text(text)
        text = ""
        yield item
    if text:
        yield Text(text)


def _overlap(text: str, tag: str) -> int:
    """How much of the tag's beginning the text ends with."""
    return next((length for length in range(min(len(text), len(tag) - 1), 0, -1) if text.endswith(tag[:length])), 0)
