"""Server-sent events of a chat-completions stream, from bytes to JSON objects. Pure: any split gives the same."""

from __future__ import annotations

import json
from typing import Any

END = b"[DONE]"
SHOWN_CHARACTERS = 200
"""Of a text that is no JSON, in the error."""


class BrokenReplyError(Exception):
    """The server's reply is no message: `body` is the error it sent instead, if it sent one."""

    def __init__(self, message: str, body: Any = None) -> None:
        super().__init__(message)
        self.body = body


class EventStream:
    """Reads the events out of whatever pieces the network brings.

    More forgiving than the standard: an event counts as soon as its line is whole JSON, since some servers leave the
    blank line out, and the last one needs no line end.
    """

    def __init__(self) -> None:
        self.is_done = False
        """Whether `[DONE]` was seen; what comes after it is ignored."""
        self._rest = b""
        self._after_return = False
        self._open: list[bytes] = []
        """Data lines that are no JSON yet."""

    def feed(self, data: bytes) -> list[dict[str, Any]]:
        """The events that these bytes complete."""
        if self._after_return and data.startswith(b"\n"):
            data = data[1:]
        if not data:
            return []
        self._after_return = data.endswith(b"\r")
        data = self._rest + data
        lines = data.splitlines()
        self._rest = b"" if data.endswith((b"\n", b"\r")) else lines.pop()
        return [event for line in lines if (event := self._read_line(line)) is not None]

    def finish(self) -> list[dict[str, Any]]:
        """The event that lacks its line end. Half an event is dropped: whether it is missed, the reader knows."""
        rest, self._rest = self._rest, b""
        event = self._read_line(rest) if rest else None
        return [] if event is None else [event]

    def _read_line(self, line: bytes) -> dict[str, Any] | None:
        if self.is_done:
            return None
        if not line:
            self._end_event()
            return None
        name, _, value = line.removeprefix(b"\xef\xbb\xbf").partition(b":")
        if name != b"data":
            return None  # a comment (heartbeats are), or an event's name or number
        value = value.removeprefix(b" ")
        if not self._open and value.strip() == END:
            self.is_done = True
            return None
        self._open.append(value)
        try:
            event = json.loads(b"\n".join(self._open))
        except ValueError:
            return None
        self._open.clear()
        if not isinstance(event, dict):
            raise BrokenReplyError(f"the server sent an event that is no JSON object: {value[:SHOWN_CHARACTERS]!r}")
        return event

    def _end_event(self) -> None:
        text = b"\n".join(self._open)
        self._open.clear()
        if text.strip():
            raise BrokenReplyError(f"the server sent an event that is no JSON: {text[:SHOWN_CHARACTERS]!r}")
