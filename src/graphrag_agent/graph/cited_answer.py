"""What a model's answer is worth: one that names no source is asked for once more."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.constants import TAG_NOSTREAM
from langgraph.errors import GraphBubbleUp

from graphrag_agent.answer_check.checking import draws_on
from graphrag_agent.citations import Marker, parse_markers
from graphrag_agent.graph.loop import Request
from graphrag_agent.graph.policy.budget import Spent, seconds_left
from graphrag_agent.graph.policy.pairing import calls_of
from graphrag_agent.graph.policy.refusal import has_declined
from graphrag_agent.graph.prompts.building import build_prompt
from graphrag_agent.graph.recall import without_recalled
from graphrag_agent.graph.state import TurnState
from graphrag_agent.graph.toolless_call import call_without_tools
from graphrag_agent.models.asking import reply_usage
from graphrag_agent.models.text_tools.rescue import rescue_tool_calls
from graphrag_agent.tools.evidence_message import read_evidence, shown_ids

logger = logging.getLogger(__name__)

WHY = "your answer to this question named no evidence"


async def ask_for_citations(
    request: Request, state: TurnState, answer: AIMessage, spent: Spent, config: RunnableConfig
) -> tuple[AIMessage, Spent]:
    """The answer, or another that names its evidence, and what is spent besides the answer's own call.

    Asked once, without tools, within the turn's rounds and seconds, and only where the answer says what the evidence
    says: "nothing was found" needs no source. What is no better, fails or comes too late changes nothing.
    """
    if request.limits.citation_policy != "ask_once" or not _lacks_citations(answer, state.get("turn") or []):
        return answer, spent
    left = seconds_left(spent, request.limits, now=time.time())
    if spent.rounds + 2 > request.limits.max_rounds or left <= 0:
        return answer, spent
    again = await _ask_again(request, state, config, left)
    if again is None:
        return answer, spent.plus(rounds=1)
    is_better = bool(again.text.strip()) and not has_declined(again) and _cites(again, state.get("turn") or [])
    chosen, other = (again, answer) if is_better else (answer, again)
    return chosen, spent.plus(rounds=1, **reply_usage(other))


def is_blank(answer: BaseMessage, turn: Sequence[BaseMessage]) -> bool:
    """Whether a reader would see nothing of it: no words, and no mark that stands for evidence of the turn."""
    pieces = parse_markers(answer.text)
    if any(isinstance(piece, str) and piece.strip() for piece in pieces):
        return False
    known = read_evidence(turn).keys()
    return not any(isinstance(piece, Marker) and (piece.is_bare or known & set(piece.ids)) for piece in pieces)


async def _ask_again(request: Request, state: TurnState, config: RunnableConfig, left: float) -> AIMessage | None:
    prompt = build_prompt(
        request.instructions,
        state["messages"],
        state.get("turn") or [],
        request.limits,
        summary=state.get("summary"),
        stop_because=WHY,
    )
    try:
        async with asyncio.timeout(left):
            again = await call_without_tools(request.loop, prompt, request.protocol, _silent(config))
    except GraphBubbleUp:
        raise
    except Exception as error:  # the answer is there already
        logger.warning("asking for citations failed: %s: %s", type(error).__name__, error)
        return None
    again = rescue_tool_calls(again, tuple(request.tools))
    return again.model_copy(update={"tool_calls": [], "invalid_tool_calls": []})


def _silent(config: RunnableConfig) -> RunnableConfig:
    """A reader has the first answer before him: the other one comes whole, if it comes."""
    return {**config, "tags": [*(config.get("tags") or ()), TAG_NOSTREAM]}


def _lacks_citations(answer: AIMessage, turn: Sequence[BaseMessage]) -> bool:
    if not turn or calls_of(answer) or not answer.text.strip() or has_declined(answer) or _cites(answer, turn):
        return False
    evidence = read_evidence(without_recalled(turn))
    return bool(evidence) and draws_on(answer.text, list(evidence.values()))


def _cites(answer: AIMessage, turn: Sequence[BaseMessage]) -> bool:
    ids = [id_ for piece in parse_markers(answer.text) if isinstance(piece, Marker) for id_ in piece.ids]
    return bool(ids) and not shown_ids(turn).keys().isdisjoint(ids)
