"""Adds turns that a prompt has no room for to the thread's summary; only with `history_summary="model"`."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphBubbleUp
from langgraph.types import Command

from graphrag_agent.citations import resolve_citations
from graphrag_agent.graph.loop import Loop, Request
from graphrag_agent.graph.policy.budget import Spent, seconds_left
from graphrag_agent.graph.prompts.digest import Summary, digest_lines, summary_tokens, turns_to_sum_up
from graphrag_agent.graph.prompts.history import split_history
from graphrag_agent.graph.prompts.loading import render_prompt
from graphrag_agent.graph.state import TurnState
from graphrag_agent.models.asking import AskedModel
from graphrag_agent.models.packing import cut_to_sentences

logger = logging.getLogger(__name__)

SECONDS_SHARE = 0.25
"""Of the turn's time, what this call may take."""

TOKENS_PER_WORD = 2
"""More than English needs, so that other languages stay within the tokens too."""


async def summarize_history(loop: Loop, state: TurnState, config: RunnableConfig) -> Command[str]:
    """The new summary, kept in the thread; where the call fails, prompts show a line a turn and the next turn tries."""
    request, history = loop.request(), state["messages"]
    spent, summary = Spent.of(state.get("budget"), now=time.time()), Summary.of(state.get("summary"), history)
    goto = "retrieve_once" if request.protocol == "one_shot" else "model"
    span = turns_to_sum_up(history, summary, request.limits)
    if span is None:
        return Command(goto=goto)
    try:
        left = seconds_left(spent, request.limits, now=time.time())
        async with asyncio.timeout(max(0.0, left * SECONDS_SHARE)):
            instructions, told = _prompt(request, history, summary, span)
            reply = await AskedModel(loop.chat_model).ask(instructions, told, name="summarize_history")
    except GraphBubbleUp:
        raise
    except Exception as error:
        logger.warning("the thread's summary failed: %s: %s", type(error).__name__, error)
        return Command(goto=goto)
    update: dict[str, Any] = {"budget": spent.plus(**reply.usage).at(time.time())}
    text = resolve_citations(reply.text, {}).text
    if text := cut_to_sentences(text, summary_tokens(request.limits)).text:
        last = history[span[1] - 1].id or ""
        update["summary"] = Summary(text, span[1], last)._asdict()
    return Command(update=update, goto=goto)


def _prompt(
    request: Request, history: Sequence[BaseMessage], summary: Summary, span: tuple[int, int]
) -> tuple[str, str]:
    """Instructions and text: the summary so far and the turns behind it, as far as they fit whole, else a line each."""
    start, end = span
    limits = request.limits
    turns, older = split_history(history[start:end], limits.max_history_tokens)
    lines = digest_lines(history, start, start + older, summary_tokens(limits))
    text = [f"Summary so far: {summary.text or '(none)'}", *lines]
    text += [f"{'User' if isinstance(turn, HumanMessage) else 'Assistant'}: {turn.text}" for turn in turns]
    instructions = render_prompt("summarize_history", words=str(summary_tokens(limits) // TOKENS_PER_WORD))
    return instructions, "\n\n".join(text)
