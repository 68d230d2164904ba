"""A reply put together from a stream's chunks: what each batch adds, and the whole. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from graphrag_agent.models.openai_compatible.event_stream import BrokenReplyError, EventStream
from graphrag_agent.models.openai_compatible.tool_calls import Call, CallAssembler, Piece
from graphrag_agent.models.thoughts import Parted, ThoughtSplitter, part_unopened

TOLD_WITH_THE_END = ("model", "system_fingerprint", "service_tier")
"""Fields of a chunk that ChatOpenAI reads beside the finish reason."""


@dataclass(slots=True)
class Delta:
    """Some consecutive chunks as one: what they add to the message."""

    content: list[Any] = field(default_factory=list)
    """Texts, and the content blocks that are no text."""
    reasoning: list[str] = field(default_factory=list)
    refusal: list[str] = field(default_factory=list)
    pieces: list[Piece] = field(default_factory=list)
    end: dict[str, Any] = field(default_factory=dict)
    finish_reason: str | None = None

    def as_chunk(self) -> dict[str, Any]:
        """The same in the provider's form, for the library's own conversion."""
        delta = {"role": "assistant", "content": join_content(self.content), "tool_calls": _merge_pieces(self.pieces)}
        return {**self.end, "choices": [{"delta": delta, "finish_reason": self.finish_reason}]}

    def extras(self) -> dict[str, str]:
        """What the library's conversion leaves out, as `additional_kwargs`."""
        texts = {"reasoning_content": "".join(self.reasoning), "refusal": "".join(self.refusal)}
        return {name: text for name, text in texts.items() if text}


class Reply:
    """One streamed reply: bytes in, the delta of each batch out, the whole kept.

    `opens_thoughts`: this model's prompt seems to end with `<think>`, so that the reply begins among its thoughts.
    """

    def __init__(self, *, opens_thoughts: bool = False) -> None:
        self.whole = Delta()
        self.opens_thoughts = opens_thoughts
        """After the end: whether the next reply of this model is to be read so."""
        self.is_other_text = False
        """After the end: whether the whole message's text is another than that of its deltas together."""
        self.usage: dict[str, Any] | None = None
        """The last usage that was told, as a chunk of its own: some servers count up in every chunk."""
        self._events = EventStream()
        self._calls = CallAssembler()
        self._thoughts = ThoughtSplitter(is_opened=opens_thoughts)
        self._has_choice = False

    @property
    def is_done(self) -> bool:
        """Whether the server said that nothing follows."""
        return self._events.is_done

    @property
    def calls(self) -> Sequence[Call]:
        """The tool calls so far."""
        return self._calls.calls

    def feed(self, data: bytes) -> Delta | None:
        """What these bytes add; None where they hold no part of the message."""
        return self._take(self._events.feed(data))

    def feed_whole(self, body: dict[str, Any]) -> Delta | None:
        """What a whole message adds, where a stream was asked for."""
        self._events.is_done = True
        return self._take([body])

    def finish(self) -> Delta:
        """The last delta, at the end of the bytes. Raises BrokenReplyError for a reply that was cut off."""
        last = self._take(self._events.finish()) or Delta()
        self._add_held(last)
        if not self._has_choice or not (self.is_done or self.whole.finish_reason):
            raise BrokenReplyError("the stream ended before the model's message did")
        self._part_unopened()
        return last

    def _part_unopened(self) -> None:
        """Thoughts that nothing announced have gone out as text; the whole message has them in their place."""
        if parted := part_content(self.whole.content):
            self.whole.content, self.whole.reasoning = [parted.said], [*self.whole.reasoning, parted.thought]
            self.opens_thoughts = self.is_other_text = True

    def _take(self, chunks: Iterable[dict[str, Any]]) -> Delta | None:
        delta = Delta()
        has_choice = False
        for chunk in chunks:
            raise_reported_error(chunk)
            choice = first_choice(chunk)
            usage = chunk.get("usage") or choice.get("usage")
            if usage and isinstance(usage, dict):
                self.usage = {"choices": [], "usage": whole_counts(usage), "service_tier": chunk.get("service_tier")}
            if choice:
                has_choice = True
                self._add(delta, chunk, choice)
        self._has_choice |= has_choice
        if has_choice and self.is_done:
            self._add_held(delta)
        return delta if has_choice else None

    def _add(self, delta: Delta, chunk: dict[str, Any], choice: dict[str, Any]) -> None:
        told = message_of(choice) or {}
        content, reasoning, refusal = part_thoughts(read_content(told), self._thoughts)
        pieces = [self._calls.add(call) for call in raw_calls(told)]
        for target in (delta, self.whole):
            target.content += content
            target.reasoning += reasoning
            target.refusal += refusal
            target.pieces += pieces
        if (reason := choice.get("finish_reason")) and not self.whole.finish_reason:
            delta.finish_reason = self.whole.finish_reason = reason
            delta.end = self.whole.end = {name: chunk[name] for name in TOLD_WITH_THE_END if chunk.get(name)}
            self._add_held(delta)

    def _add_held(self, delta: Delta) -> None:
        said, thought = self._thoughts.close(is_cut_off=self.whole.finish_reason == "length")
        if said and self._thoughts.was_text:  # what went out as thought comes again, as the answer that it is
            self.whole.reasoning, self.opens_thoughts = [], False
        for target in (delta, self.whole):
            target.content += [said] if said else []
            target.reasoning += [thought] if thought else []


def raise_reported_error(body: dict[str, Any]) -> None:
    """Raise BrokenReplyError for a body or an event that tells of an error instead of a message."""
    error = body.get("error") or (body if body.get("object") == "error" else None)
    if error:
        message = error.get("message") if isinstance(error, dict) else error
        raise BrokenReplyError(
            message if message and isinstance(message, str) else "An error occurred during streaming", error
        )


def whole_counts(usage: Any) -> dict[str, Any]:
    """The counts of a usage that are numbers, as whole ones: a message with others would be refused, and so be lost."""
    counts: dict[str, Any] = {}
    for name, value in usage.items() if isinstance(usage, dict) else ():
        if isinstance(value, dict):
            counts[name] = whole_counts(value)
        elif isinstance(value, int | float) and math.isfinite(value):
            counts[name] = int(value)
        elif isinstance(value, str) and value.isascii() and value.isdigit():
            counts[name] = int(value[:18])
    return counts


def first_choice(body: dict[str, Any]) -> dict[str, Any]:
    """The choice of a chunk or a completion; empty where there is none."""
    choices = body.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    return choice if isinstance(choice, dict) else {}


def message_of(choice: dict[str, Any]) -> dict[str, Any] | None:
    """What a choice says: its delta, or its message where it is whole."""
    told = choice.get("delta") or choice.get("message")
    return told if isinstance(told, dict) else None


def raw_calls(message: dict[str, Any]) -> list[dict[str, Any]]:
    """The tool calls of a message or a delta, as the server sent them."""
    calls = message.get("tool_calls") or []
    listed = calls if isinstance(calls, list) else [calls]
    return [call for call in listed if isinstance(call, dict)]


def read_content(message: dict[str, Any]) -> tuple[list[Any], list[str], list[str]]:
    """Content, reasoning and refusal of a message or a delta; content may be text or a list of blocks."""
    content: list[Any] = []
    reasoning = _texts(message.get("reasoning_content") or message.get("reasoning"))
    refusal = _texts(message.get("refusal"))
    given = message.get("content")
    for block in given if isinstance(given, list) else [given]:
        if not isinstance(block, dict):
            content += _texts(block)
            continue
        kind = block.get("type")
        if kind in ("thinking", "reasoning"):
            reasoning += _texts(block.get(kind) or block.get("text"))
        elif kind == "refusal":
            refusal += _texts(block.get("refusal"))
        elif kind in ("text", "output_text"):
            content += _texts(block)
        else:
            content.append(block)
    return content, reasoning, refusal


def part_thoughts(
    parts: tuple[list[Any], list[str], list[str]], splitter: ThoughtSplitter
) -> tuple[list[Any], list[str], list[str]]:
    """The parts of a message with what its text says in `<think>` tags among the reasoning."""
    content, reasoning, refusal = parts
    said: list[Any] = []
    thoughts: list[str] = []
    for part in content:
        if not isinstance(part, str):
            said.append(part)
            continue
        text, thought = splitter.feed(part)
        said += [text] if text else []
        thoughts += [thought] if thought else []
    return said, [*reasoning, *thoughts], refusal


def part_content(content: Sequence[Any]) -> Parted | None:
    """Thoughts that end with a tag and begin with none; None where the content is not such, or not all text."""
    return part_unopened("".join(content)) if all(isinstance(part, str) for part in content) else None


def _texts(value: Any) -> list[str]:
    """The texts of a string, a text block, or a list of them."""
    if isinstance(value, dict):
        value = value.get("text")
    if isinstance(value, list):
        return [text for item in value for text in _texts(item)]
    return [value if isinstance(value, str) else str(value)] if value not in (None, "") else []


def join_content(content: Sequence[Any]) -> str | list[Any]:
    """Content as a message has it: text wherever it is nothing but text."""
    if all(isinstance(part, str) for part in content):
        return "".join(content)
    blocks: list[Any] = []
    for part in content:
        if isinstance(part, str) and blocks and blocks[-1].get("type") == "text":
            blocks[-1]["text"] += part
        else:
            blocks.append({"type": "text", "text": part} if isinstance(part, str) else part)
    return blocks


def _merge_pieces(pieces: Sequence[Piece]) -> list[dict[str, Any]]:
    """One delta for each call."""
    merged: dict[int, dict[str, Any]] = {}
    for piece in pieces:
        entry = merged.setdefault(piece.call, {"index": piece.call, "id": None, "name": None, "arguments": []})
        entry["id"] = entry["id"] or piece.id
        entry["name"] = (entry["name"] or "") + piece.name if piece.name else entry["name"]
        entry["arguments"].append(piece.arguments)
    return [
        {
            "index": entry["index"],
            "id": entry["id"],
            "function": {"name": entry["name"], "arguments": "".join(entry["arguments"])},
        }
        for entry in merged.values()
    ]
