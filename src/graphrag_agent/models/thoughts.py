"""What a model thinks aloud in its text, between tags."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage

_OPENING = re.compile(r"\s*<think(?:ing)?>", re.IGNORECASE)
_CLOSING = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
_THOUGHTS = re.compile(rf"{_OPENING.pattern}.*?(?:{_CLOSING.pattern}|\Z)", re.DOTALL | re.IGNORECASE)
_OPENINGS, _CLOSINGS = ("<think>", "<thinking>"), ("</think>", "</thinking>")
_CLOSING_ALONE = re.compile(rf"\A\s*{_CLOSING.pattern}|^[ \t]*{_CLOSING.pattern}[ \t]*$", re.MULTILINE | re.IGNORECASE)


class Parted(NamedTuple):
    """A piece of a reply."""

    said: str
    thought: str


def without_thoughts(text: str) -> str:
    """The text without them, also where it broke off among them."""
    parted = part_unopened(text)
    return (parted.said if parted else _THOUGHTS.sub("", text)).strip()


def part_unopened(text: str) -> Parted | None:
    """A reply whose thoughts end with a tag but begin with none; None for any other.

    Templates of many reasoning models (DeepSeek R1, Qwen3 Thinking) end the prompt with the opening tag, so that the
    reply has only the closing one, on a line of its own or before all text. In a block of code it is text.
    """
    closing = _CLOSING_ALONE.search(text)
    if closing is None:
        return None
    before = text[: closing.start()]
    if "<think" in before.lower() or before.count("```") % 2:
        return None
    return Parted(text[closing.end() :].lstrip(), before)


def with_thoughts_aside(message: AIMessage) -> AIMessage:
    """The message with what its text thinks aloud as `reasoning_content`, as reasoning models give it; else the same.

    A chat model of any kind may leave its thoughts in its text. Thoughts that nothing announced have been streamed as
    text, so the message gets an id of its own then.
    """
    blocks: list[Any] = [message.content] if isinstance(message.content, str) else message.content
    if message.additional_kwargs.get("reasoning_content") or any(map(_is_thought, blocks)):
        return message
    at, text = next(((at, text) for at, block in enumerate(blocks) if (text := _text_of(block)).strip()), (0, ""))
    if "<" not in text:
        return message
    unopened = part_unopened(text)
    parted = unopened or _parted(text)
    if parted.said == text:
        return message
    update: dict[str, Any] = {"content": parted.said}
    if isinstance(message.content, list):
        said = parted.said if isinstance(blocks[at], str) else {**blocks[at], "text": parted.said}
        update["content"] = [*blocks[:at], *([said] if parted.said else []), *blocks[at + 1 :]]
    if parted.thought:
        update["additional_kwargs"] = {**message.additional_kwargs, "reasoning_content": parted.thought}
    if unopened and message.id:
        update["id"] = f"{message.id}-answer"
    return message.model_copy(update=update)


class ThoughtSplitter:
    """Parts a reply that begins with `<think>...</think>`, piece by piece. However it is cut, the parts are the same.

    Some servers leave the thoughts of a model in its text. Later in a text such a tag is text: an answer about it.
    `is_opened`: the prompt seems to have had the opening tag; a reply that then has no closing one was text after all.
    """

    def __init__(self, *, is_opened: bool = False) -> None:
        self._is_supposed = is_opened
        self._supposed: list[str] = []
        """What went out as thought, and is text if no closing tag comes."""
        self._held = ""
        self._is_start = True
        self._is_thought = False
        self._is_after = False
        self.was_text = False
        """Whether all that went out as thought was text."""

    def feed(self, piece: str) -> Parted:
        """What is certain by now; half a tag is held back."""
        self._held += piece
        thought = ""
        if self._is_start and not self._begin():
            return Parted("", "")
        if self._is_thought:
            closing = _CLOSING.search(self._held)
            if closing is None:
                certain = len(self._held) - _half_tag(self._held, _CLOSINGS)
                thought, self._held = self._held[:certain], self._held[certain:]
                if self._is_supposed:
                    self._supposed.append(thought)
                return Parted("", thought)
            thought, self._held = self._held[: closing.start()], self._held[closing.end() :]
            self._is_thought, self._is_supposed, self._is_after = False, False, True
        if self._is_after:  # blank lines part the two
            self._held = self._held.lstrip()
            self._is_after = not self._held
        said, self._held = self._held, ""
        return Parted(said, thought)

    def close(self, *, is_cut_off: bool = False) -> Parted:
        """What was held back, with nothing to follow it."""
        rest, self._held = self._held, ""
        if self._is_thought and self._is_supposed and not is_cut_off:
            self._is_thought = self._is_supposed = False
            self.was_text = True
            return Parted("".join([*self._supposed, rest]), "")
        return Parted("", rest) if self._is_thought else Parted(rest, "")

    def _begin(self) -> bool:
        """Decides what the reply begins with; False while that may still change."""
        opening = _OPENING.match(self._held)
        begun = self._held.lstrip().lower()
        if opening is None and any(tag.startswith(begun) for tag in _OPENINGS):
            return False
        self._is_start = False
        if opening:
            self._held, self._is_supposed = self._held[opening.end() :], False
        self._is_thought = bool(opening) or self._is_supposed
        return True


def _is_thought(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") in ("thinking", "reasoning")


def _text_of(block: Any) -> str:
    text = block if isinstance(block, str) else block.get("text") if block.get("type") == "text" else None
    return text if isinstance(text, str) else ""


def _parted(text: str) -> Parted:
    splitter = ThoughtSplitter()
    first, last = splitter.feed(text), splitter.close()
    return Parted(first.said + last.said, first.thought + last.thought)


def _half_tag(text: str, tags: tuple[str, ...]) -> int:
    """Characters at the end of the text that may begin a tag."""
    at = text.rfind("<", max(0, len(text) - max(map(len, tags))))
    return len(text) - at if at >= 0 and any(tag.startswith(text[at:].lower()) for tag in tags) else 0
