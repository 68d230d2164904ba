"""Which turns of a thread a model is shown. Pure; the cost is that of what is shown, not that of the thread."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from graphrag_agent.token_estimate import estimate_tokens

Content = str | list[str | dict[Any, Any]]

CANCELLED = "cancelled"
"""Key in a question's additional_kwargs: its turn was cut off before it had an answer."""


class SplitHistory(NamedTuple):
    """A thread at the point where it becomes too long."""

    recent: list[BaseMessage]
    """The newest question, and the whole turns before it that fit; oldest first."""
    left_out: int
    """`history[:left_out]` is older than all of them."""


def newest_question(messages: Sequence[BaseMessage]) -> HumanMessage | None:
    """The question that the turn answers."""
    return next((message for message in reversed(messages) if isinstance(message, HumanMessage)), None)


def split_history(history: Sequence[BaseMessage], limit: int) -> SplitHistory:
    """The newest question whole, and before it as many whole turns as fit the tokens.

    A question that never got an answer and doesn't fit is passed over; any other turn that doesn't fit is the end.
    """
    pieces: list[Sequence[BaseMessage]] = []
    left, left_out = limit, 0
    for start, end in turns_backwards(history, len(history)):
        turn = history[start:end]
        if pieces:
            cost = sum(map(tokens_of, turn))
            if cost > left and all(isinstance(message, HumanMessage) for message in turn):
                continue
            left -= cost
            if left < 0:
                left_out = end
                break
        pieces.append(turn)
    return SplitHistory([message for turn in reversed(pieces) for message in turn], left_out)


def turns_backwards(history: Sequence[BaseMessage], end: int) -> Iterator[tuple[int, int]]:
    """(start, end) of each turn of `history[:end]`, newest first: a question and what follows it.

    What stands before the first question, such as a greeting, is a turn too.
    """
    while end > 0:
        start = end - 1
        while start > 0 and not isinstance(history[start], HumanMessage):
            start -= 1
        yield start, end
        end = start


def tokens_of(message: BaseMessage) -> int:
    """Estimated tokens of the message's text; images and the like are not counted."""
    return estimate_tokens(text_of(message))


def text_of(message: BaseMessage) -> str:
    """`message.text`, at a fraction of its cost for one block of text, as every committed answer is."""
    content = message.content
    if isinstance(content, str):
        return content
    if len(content) == 1 and isinstance(block := content[0], dict) and isinstance(text := block.get("text"), str):
        return text if block.get("type") == "text" else str(message.text)
    return str(message.text)


def as_dialogue(history: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Questions and answers in turn: some chat templates refuse two human messages in a row."""
    dialogue: list[BaseMessage] = []
    for message in history:
        previous = dialogue[-1] if dialogue else None
        if isinstance(message, HumanMessage) and isinstance(previous, HumanMessage):
            if previous.additional_kwargs.get("ending") == CANCELLED:
                dialogue.append(AIMessage("(This question got no answer: its turn was cut off.)"))
            else:
                dialogue[-1] = message.model_copy(update={"content": joined(previous.content, message.content)})
                continue
        dialogue.append(_without_annotations(message))
    return dialogue


def _without_annotations(message: BaseMessage) -> BaseMessage:
    """An answer as the text it is: what a client reads beside it is no business of the model, or its provider."""
    if isinstance(message, AIMessage) and not isinstance(message.content, str):
        return message.model_copy(update={"content": text_of(message)})
    return message


def joined(first: Content, second: Content) -> Content:
    """Both contents in one message."""
    if isinstance(first, str) and isinstance(second, str):
        return f"{first}\n\n{second}"
    return [*_blocks(first), *_blocks(second)]


def _blocks(content: Content) -> list[str | dict[Any, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content
