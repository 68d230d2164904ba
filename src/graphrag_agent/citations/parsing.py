"""Finds the marks of citations in a text, also while it still comes in pieces.

A mark is one or several evidence ids in brackets: `[k3f2a]`, `[k3f2a, m7xw2]`, `【k3f2a】`, a backticked `[k3f2a]`.
Code, links and every other bracket are text. However a text is cut into pieces, what is found in it is the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

MAX_HELD = 1_000
"""Characters after which an open bracket or backtick is text; nothing is held back longer."""
_MAX_INFO = 200
"""Characters of the line that opens a block of code, and of the blanks before it, that are looked at."""
_MAX_NESTED = 8
"""Brackets in the text of a link; what nests deeper is none."""

_ID = r"[a-z][2-9][a-z2-9]{3,5}"
_NAMED = rf"`?(?:(?:ids?|evidence|sources?|ref)[ \t]*(?:[:=：][ \t]*)?|[#^@])?(?:{_ID})`?"
_BETWEEN = r"(?:[ \t]*[,;，、；|/&][ \t]*|[ \t]+(?:and|и|和|与)[ \t]+|[ \t]+)"
_INSIDE = rf"[ \t]*{_NAMED}(?:{_BETWEEN}{_NAMED})*[ \t]*"
_MARKER = re.compile(rf"\[\[{_INSIDE}\]\]|\\?[\[【［]{_INSIDE}\\?[\]】］]", re.IGNORECASE)
_MARKER_BEGUN = re.compile(r"(?:\\?[\[【［]{1,2}[a-z2-9#^@`:=：,;，、；|/& \tи和与]*\\?\]?|\\)\Z", re.IGNORECASE)
_IDS = re.compile(rf"(?<![a-z0-9]){_ID}(?![a-z0-9])", re.IGNORECASE)
_LONE_ID = re.compile(_ID, re.IGNORECASE)
_SPECIAL = re.compile(r"[\[【［`\\\n]")
_LINE_BEGUN = re.compile(rf"[ \t>]{{0,{_MAX_INFO}}}(?:(?:[-*+]|\d{{1,9}}[.)]?)[ \t]{{0,9}})?(?:`{{0,99}}|~{{0,99}})\Z")
_FENCE = re.compile(rf"[ \t>]{{0,{_MAX_INFO}}}(?:(?:[-*+]|\d{{1,9}}[.)])[ \t]{{1,9}})?(`{{3,99}}|~{{3,99}})")
_FENCE_END = re.compile(r"[ \t>]*(`{3,}|~{3,})[ \t]*\Z")
_FENCE_END_BEGUN = re.compile(rf"[ \t>]{{0,{_MAX_INFO}}}[`~]{{0,99}}[ \t]{{0,{_MAX_INFO}}}\Z")
_IN_TARGET = r"[^\s<>\[\]`]"
_DEFINITION = re.compile(rf""":[ \t]*<?(?={_IN_TARGET}*[/.#:]){_IN_TARGET}*+>?(?:[ \t]+["'(].*)?[ \t]*\Z""")
_BRACKET = re.compile(r"\\.|[\[\]\n]")
_TARGET = re.compile(r"\((?:[^()\n]|\([^()\n]*\))*\)")
_LABEL = re.compile(r"\[[^\[\]\n]*\]")


@dataclass(frozen=True, slots=True)
class Marker:
    """A mark and the ids in it, in lower case, each once."""

    raw: str
    ids: tuple[str, ...]
    is_bare: bool = False
    """Whether it is an id in backticks without brackets, which may as well be code."""


Piece = str | Marker


class MarkerStream:
    """Takes a text piece by piece; gives text that holds no mark, and the marks between."""

    def __init__(self) -> None:
        self._held = ""
        self._fence = ""
        self._at_line_start = True
        self._is_over = False

    def feed(self, text: str) -> list[Piece]:
        """What is certain by now. The rest, at most a line, is held back."""
        self._held += text
        return merge_pieces(self._read())

    def close(self) -> list[Piece]:
        """What was held back, with nothing to follow it."""
        self._is_over = True
        return merge_pieces(self._read())

    def _read(self) -> Iterator[Piece]:
        while self._held:
            if self._fence:
                piece = self._in_code_block()
            elif self._at_line_start:
                piece = self._line_start()
            else:
                piece = self._inline()
            if piece is None:
                return
            if piece:
                yield piece

    def _take(self, count: int) -> str:
        taken, self._held = self._held[:count], self._held[count:]
        self._at_line_start = taken.endswith("\n")
        return taken

    def _in_code_block(self) -> Piece | None:
        line, newline, _ = self._held.partition("\n")
        if not newline and not self._is_over and self._at_line_start and _FENCE_END_BEGUN.match(line):
            return None
        if self._at_line_start and (newline or self._is_over):
            end = _FENCE_END.match(line)
            if end and end[1].startswith(self._fence):
                self._fence = ""
        return self._take(len(line) + len(newline))

    def _line_start(self) -> Piece | None:
        """Decides whether a block of code opens here; the line's text is read after that."""
        fence = _FENCE.match(self._held)
        if not self._is_over and _LINE_BEGUN.match(self._held):
            return None
        self._at_line_start = False
        if fence is None:
            return self._definition()
        info = self._held[fence.end() : fence.end() + _MAX_INFO]
        if not self._is_over and len(info) < _MAX_INFO and not re.search(r"[\n`]", info):
            self._at_line_start = True
            return None
        if fence[1][0] == "`" and "`" in info.partition("\n")[0]:
            return self._take(fence.start(1))  # code inside a line
        self._fence = fence[1]
        return self._take(fence.end())

    def _definition(self) -> Piece | None:
        """The label of a reference at a line's start, `[k3f2a]: http://...`; empty where there is none."""
        blanks = len(self._held) - len(self._held.lstrip(" "))
        if blanks > _MAX_INFO:  # a stream has given them out by now
            return ""
        marker = _MARKER.match(self._held, blanks, blanks + MAX_HELD)
        if marker is None:
            if not self._is_over and self._may_be_marker(blanks):
                self._at_line_start = True
                return None
            return ""
        rest, newline, _ = self._held[marker.end() : marker.end() + MAX_HELD].partition("\n")
        is_open_end = not newline and len(rest) < MAX_HELD and not self._is_over
        if is_open_end and rest[:1] in ("", ":"):
            self._at_line_start = True
            return None
        return self._take(marker.end()) if _DEFINITION.match(rest) else ""

    def _may_be_marker(self, at: int) -> bool:
        begun = self._held[at : at + MAX_HELD]
        return len(begun) < MAX_HELD and bool(_MARKER_BEGUN.match(begun))

    def _inline(self) -> Piece | None:
        special = _SPECIAL.search(self._held)
        if special is None:
            return self._take(len(self._held))
        if special.start():
            return self._take(special.start())
        if special[0] == "\n":
            return self._take(1)
        if special[0] == "`":
            return self._code()
        if (marker := _MARKER.match(self._held, 0, MAX_HELD)) is not None:
            return self._marker(marker[0])
        if not self._is_over and self._may_be_marker(0):
            return None
        if special[0] == "\\":
            if len(self._held) == 1 and not self._is_over:
                return None
            return self._take(1 if self._held[1:2] in ("", "\n") else 2)
        return self._bracket() if special[0] == "[" else self._take(1)

    def _marker(self, raw: str) -> Piece | None:
        following = self._held[len(raw) : len(raw) + 1]
        if not following and not self._is_over:
            return None
        if raw[0] == "[" and following == "(":
            return self._link(len(raw))
        return Marker(self._take(len(raw)), _ids_of(raw))

    def _code(self) -> Piece | None:
        run = re.match("`+", self._held)
        length = run.end() if run else 0
        if length == len(self._held) and length < MAX_HELD and not self._is_over:
            return None
        window = self._held[:MAX_HELD].partition("\n")[0]
        close = re.compile(rf"(?<!`)`{{{length}}}(?!`)").search(window, length)
        is_open_end = len(window) == len(self._held) and len(window) < MAX_HELD and not self._is_over
        if is_open_end and (close is None or close.end() == len(window)):
            return None  # one more backtick would make it another run
        if close is None:
            return self._take(length)
        content = self._held[length : close.start()].strip()
        raw = self._take(close.end())
        if _MARKER.fullmatch(content):
            return Marker(raw, _ids_of(content))
        if _LONE_ID.fullmatch(content):
            return Marker(raw, (content.lower(),), is_bare=True)
        return raw

    def _bracket(self) -> Piece | None:
        """A bracket that holds no ids: the text of a link is left alone, of any other bracket what is in it is read."""
        end = self._closing()
        if end is None:
            return None
        if end == 0:
            return self._take(1)
        following = self._held[end : end + 1]
        if not following and not self._is_over:
            return None
        if following == "(":
            return self._link(end)
        text = self._held[1 : end - 1]
        if following != "[" or "[" in text or text.strip().isdigit():
            return self._take(1)
        label = _LABEL.match(self._held, end, end + MAX_HELD)
        if label is None:
            rest = self._held[end : end + MAX_HELD]
            is_open_end = len(rest) < MAX_HELD and not re.search(r"[\]\n]|(?<=.)\[", rest) and not self._is_over
            return None if is_open_end else self._take(1)
        return self._take(label.end())

    def _closing(self) -> int | None:
        """Where the bracket at the start is closed; 0 where it isn't, None where that can't be told yet."""
        depth = 0
        window = self._held[:MAX_HELD]
        for found in _BRACKET.finditer(window):
            if found[0] == "\n":
                return 0
            depth += {"[": 1, "]": -1}.get(found[0], 0)
            if depth == 0:
                return found.end()
            if depth > _MAX_NESTED:
                return 0
        return 0 if self._is_over or len(window) == MAX_HELD else None

    def _link(self, end: int) -> Piece | None:
        """A link's text up to `end`, and its target where that is closed."""
        target = _TARGET.match(self._held, end, end + MAX_HELD)
        if target is None:
            rest = self._held[end : end + MAX_HELD]
            if len(rest) < MAX_HELD and "\n" not in rest and not self._is_over:
                return None
        return self._take(target.end() if target else end)


def parse_markers(text: str) -> list[Piece]:
    """The text as text without marks, and marks, in turn; joined (`raw` for marks) it is the text again."""
    stream = MarkerStream()
    return merge_pieces([*stream.feed(text), *stream.close()])


def merge_pieces(pieces: Iterable[Piece]) -> list[Piece]:
    """The same with neighbouring texts joined."""
    merged: list[Piece] = []
    texts: list[str] = []
    for piece in pieces:
        if isinstance(piece, str):
            texts.append(piece)
            continue
        if texts:
            merged.append("".join(texts))
            texts = []
        merged.append(piece)
    return [*merged, "".join(texts)] if texts else merged


def _ids_of(raw: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(id_.lower() for id_ in _IDS.findall(raw)))
