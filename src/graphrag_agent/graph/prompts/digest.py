"""The turns that a prompt has no room for, in a few lines. Pure, and of the cost of those lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from graphrag_agent.citations import resolve_citations
from graphrag_agent.context import Budget
from graphrag_agent.graph.prompts.history import split_history, text_of, tokens_of, turns_backwards
from graphrag_agent.graph.prompts.loading import render_prompt
from graphrag_agent.models.packing import cut_to_sentences
from graphrag_agent.models.sentences import split_sentences
from graphrag_agent.token_estimate import estimate_tokens

SUMMARY_SHARE, SUMMARY_TOKENS = 1 / 8, 1_000
"""Of the tokens for history, what the summary of the turns left out may take; never more than so many."""

BATCH_SHARE = 1 / 4
"""Turns of so many of the tokens for history are summed up in one model call: no call in most turns."""

LINE_CHARACTERS = 240
READ_CHARACTERS = 4_000
"""Of a question or an answer, what is looked at for its line."""


class Summary(NamedTuple):
    """A model's summary of the beginning of a thread, as the channel `summary` keeps it."""

    text: str = ""
    covers: int = 0
    """It covers `messages[:covers]`."""
    last: str = ""
    """Id of the last message that it covers."""

    @classmethod
    def of(cls, channel: Mapping[str, Any] | None, history: Sequence[BaseMessage]) -> Summary:
        """From the channel; empty where the thread's beginning is no longer what it covers."""
        if not channel:
            return cls()
        summary = cls(**{name: channel[name] for name in cls._fields if name in channel})
        stands = 0 < summary.covers <= len(history) and history[summary.covers - 1].id == summary.last
        return summary if stands else cls()


def summary_tokens(limits: Budget) -> int:
    """Tokens that the summary of what is left out may take; 0 where there is none."""
    if limits.history_summary == "off":
        return 0
    return min(SUMMARY_TOKENS, int(limits.max_history_tokens * SUMMARY_SHARE))


def turns_to_sum_up(history: Sequence[BaseMessage], summary: Summary, limits: Budget) -> tuple[int, int] | None:
    """(start, end) of the messages that a model should add to the summary now; None where it can wait."""
    if limits.history_summary != "model" or not (most := summary_tokens(limits)):
        return None
    if not split_history(history, limits.max_history_tokens).left_out:
        return None
    end = split_history(history, limits.max_history_tokens - most).left_out
    left = int(limits.max_history_tokens * BATCH_SHARE)
    for message in history[summary.covers : end]:
        left -= tokens_of(message)
        if left < 0:
            return summary.covers, end
    return None


def earlier_turns(history: Sequence[BaseMessage], end: int, summary: Summary, limit: int) -> list[BaseMessage]:
    """What `history[:end]` was about, as a question and its answer; none where not a line fits the tokens.

    The summary first, then a line a turn for those that it doesn't cover, as many of the newest as fit. The lines quote
    what others wrote, so they stand in a message like every other, never in the system prompt.
    """
    text = cut_to_sentences(summary.text, limit).text if summary.covers <= end else ""
    lines = digest_lines(history, summary.covers if text else 0, end, limit - estimate_tokens(text))
    if not (text or lines):
        return []
    parts = [render_prompt("earlier_answer"), text, "\n".join(lines)]
    return [HumanMessage(render_prompt("earlier_question")), AIMessage("\n".join(part for part in parts if part))]


def digest_lines(history: Sequence[BaseMessage], start: int, end: int, limit: int) -> list[str]:
    """A line for each answered turn of `history[start:end]`, oldest first: as many of the newest as fit the tokens."""
    lines: list[str] = []
    for begin, stop in turns_backwards(history, end):
        if begin < start:
            break
        turn = history[begin:stop]
        if not (isinstance(turn[0], HumanMessage) and isinstance(turn[-1], AIMessage)):
            continue
        line = f"- {_line(text_of(turn[0]))} -> {_line(_gist(text_of(turn[-1])[:READ_CHARACTERS]))}"
        limit -= estimate_tokens(line) + 1
        if limit < 0:
            break
        lines.append(line)
    return lines[::-1]


@lru_cache(maxsize=1_024)  # the same answers are shown in every round and turn
def _gist(text: str) -> str:
    """The first sentence that cites something, else the first, without ids: they stand for nothing in a later turn."""
    sentences = [sentence.text for sentence in split_sentences(text)] or [text]
    marked = (sentence for sentence in sentences if "[" in sentence)  # as every committed mark is written
    cited = (shown for sentence in marked if (shown := resolve_citations(sentence, {}).text) != sentence)
    return next(cited, sentences[0])


def _line(text: str) -> str:
    line = " ".join(text[:READ_CHARACTERS].split())
    return line if len(line) <= LINE_CHARACTERS else f"{line[:LINE_CHARACTERS].rsplit(' ', 1)[0]} …"
