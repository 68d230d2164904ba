"""The last word of a turn that may not go on: an answer from the evidence, whatever happened."""

from __future__ import annotations

import asyncio
import logging
import math
import time
import uuid
from collections.abc import Sequence
from dataclasses import replace

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphBubbleUp
from langgraph.types import Command

from graphrag_agent.context import Budget
from graphrag_agent.graph.cited_answer import is_blank
from graphrag_agent.graph.loop import SEARCH_TOOL, Loop, Request
from graphrag_agent.graph.own_search import has_searched, question_as_query, search_for
from graphrag_agent.graph.policy.budget import Spent, family_calls_left, seconds_left
from graphrag_agent.graph.policy.result_budget import has_left_out
from graphrag_agent.graph.policy.usage import newest_results, with_usage
from graphrag_agent.graph.prompts.building import build_prompt
from graphrag_agent.graph.recall import without_recalled
from graphrag_agent.graph.round import citing, settled
from graphrag_agent.graph.state import TurnState
from graphrag_agent.graph.toolless_call import call_without_tools
from graphrag_agent.models.asking import reply_usage
from graphrag_agent.models.phrases import Phrase, render_phrase
from graphrag_agent.models.questions import is_small_talk
from graphrag_agent.models.text_tools.rescue import rescue_tool_calls
from graphrag_agent.models.words import Language
from graphrag_agent.tools.evidence_message import read_evidence

logger = logging.getLogger(__name__)

NO_ANSWER = "the model gave no answer"
"""Reason of a turn that ended for another one than a failing model, whose last call failed too."""

EXTRACT_COUNT = 3
EXTRACT_CHARACTERS = 300
GRACE_SHARE, GRACE_SECONDS = 0.25, (1.0, 30.0)
"""Time for the last call when the turn's own is over: a share of it, within these bounds."""

SEARCH_SECONDS = 5.0
"""Time for a search after that: one takes a tenth of a second, the first of a process some more."""


async def summarize_on_max_iterations(loop: Loop, state: TurnState, config: RunnableConfig) -> Command[str]:
    """A last call without tools; when the model can't answer, the best passages as they stand."""
    request, ending = loop.request(), state.get("ending") or ""
    turn, changed = settled(request, state.get("turn") or [])
    if changed:
        state = {**state, "turn": turn}
    spent = with_usage(Spent.of(state.get("budget"), now=time.time()), newest_results(turn), request.limits)
    message = None
    if ending != "model_error":
        try:
            async with asyncio.timeout(_seconds(spent, request.limits)):
                message = await _last_call(request, state, ending, config)
        except TimeoutError:
            logger.warning("the last call of the turn took too long")
    found = list[AnyMessage]()
    if message is None:
        ending, spent = ending or "model_error", replace(spent, reason=spent.reason or NO_ANSWER)
        own = without_recalled(turn)
        if query := _unsearched(request, state, own, spent):
            asked, result, spent = await search_for(query, request, turn, config, spent, least_seconds=SEARCH_SECONDS)
            found = [asked, result]  # whole: no model reads it, and what else the turn has shown takes no room from it
        message = _extracted(spent.reason, [*own, *found], request.language(state["messages"]))
    else:
        spent = spent.plus(**reply_usage(message))
    update = {"turn": [*changed, *found, message], "ending": ending, "budget": spent.at(time.time())}
    return Command(update=update, goto="commit_answer")


def _seconds(spent: Spent, limits: Budget) -> float:
    least, most = GRACE_SECONDS
    grace = min(most, max(least, GRACE_SHARE * limits.max_seconds))
    return max(grace, seconds_left(spent, limits, now=time.time()))


async def _last_call(request: Request, state: TurnState, ending: str, config: RunnableConfig) -> AIMessage | None:
    prompt = build_prompt(
        request.instructions,
        state["messages"],
        _asked(state),
        request.limits,
        summary=state.get("summary"),
        stop_because=ending or "the last answer was empty",
    )
    try:
        citing_config = citing(config, state.get("turn") or [])
        message = await call_without_tools(request.loop, prompt, request.protocol, citing_config)
    except GraphBubbleUp:
        raise
    except Exception as error:
        logger.warning("the last call of the turn failed: %s: %s", type(error).__name__, error)
        return None
    message = rescue_tool_calls(message, tuple(request.tools))  # calls as text are left out of the answer
    if is_blank(message, state.get("turn") or []):
        return None
    return message.model_copy(update={"tool_calls": [], "invalid_tool_calls": []})


def _asked(state: TurnState) -> list[AnyMessage]:
    """The turn without an empty message at its end."""
    turn = list(state.get("turn") or [])
    while turn and isinstance(turn[-1], AIMessage) and not turn[-1].tool_calls and not turn[-1].invalid_tool_calls:
        turn.pop()
    return turn


def _unsearched(request: Request, state: TurnState, own: Sequence[BaseMessage], spent: Spent) -> str:
    """What nobody has searched for, though the turn may: a model that fails at once has asked for nothing."""
    if not request.can_search or request.context.retrieval == "none":
        return ""
    if has_searched(own) or read_evidence(own):  # what other tools found or read
        return ""
    family = request.tools[SEARCH_TOOL].family
    calls_left = min(
        request.limits.max_tool_calls - spent.run, family_calls_left(spent, request.limits).get(family, math.inf)
    )
    query = question_as_query(state["messages"])
    return query if calls_left > 0 and not is_small_talk(query) else ""


def _extracted(reason: str, turn: Sequence[BaseMessage], language: Language) -> AIMessage:
    best = sorted(read_evidence(turn).values(), key=lambda item: -item.score)[:EXTRACT_COUNT]
    passages = [f"- {_shortened(item.text)} [{item.id}]" for item in best]
    is_missing = has_searched(turn) and not any(map(has_left_out, turn))
    phrase: Phrase = "unwritten_found" if best else "unwritten_not_found" if is_missing else "unwritten"
    told = render_phrase(phrase, language=language, reason=reason)
    said = "\n".join([told, *passages])
    return AIMessage(said, id=f"extract-{uuid.uuid4()}", response_metadata={"extract": True})


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= EXTRACT_CHARACTERS else f"{line[:EXTRACT_CHARACTERS].rsplit(' ', 1)[0]} …"
