"""The last word of a turn that may not go on: an answer from the evidence, whatever happened."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphBubbleUp
from langgraph.types import Command

from graphrag_agent.citations import Evidence
from graphrag_agent.context import Budget
from graphrag_agent.graph.loop import Loop, Request
from graphrag_agent.graph.policy.budget import Spent, seconds_left
from graphrag_agent.graph.policy.usage import newest_results, usage_of
from graphrag_agent.graph.prompts.building import build_prompt
from graphrag_agent.graph.recall import without_recalled
from graphrag_agent.graph.round import citing, settled
from graphrag_agent.graph.state import TurnState
from graphrag_agent.models.asking import reply_usage
from graphrag_agent.models.text_tools.rescue import rescue_tool_calls
from graphrag_agent.tools.evidence_message import read_evidence
from graphrag_agent.tools.registry import ToolRegistry

logger = logging.getLogger(__name__)

EXTRACT_COUNT = 3
EXTRACT_CHARACTERS = 300
GRACE_SHARE, GRACE_SECONDS = 0.25, (1.0, 30.0)
"""Time for the last call when the turn's own is over: a share of it, within these bounds."""


async def summarize_on_max_iterations(loop: Loop, state: TurnState, config: RunnableConfig) -> Command[str]:
    """A last call without tools; when the model can't answer, the best passages as they stand."""
    request, ending = loop.request(), state.get("ending") or ""
    turn, changed = settled(request, state.get("turn") or [])
    if changed:
        state = {**state, "turn": turn}
    spent = Spent.of(state.get("budget"), now=time.time()).plus(**usage_of(newest_results(turn)))
    message = None
    if ending != "model_error":
        try:
            async with asyncio.timeout(_seconds(spent, request.limits)):
                message = await _last_call(request, state, ending, config)
        except TimeoutError:
            logger.warning("the last call of the turn took too long")
    if message is None:
        ending, spent = ending or "model_error", replace(spent, reason=spent.reason or "the model gave no answer")
        message = _extracted(spent.reason, read_evidence(without_recalled(turn)))
    else:
        spent = spent.plus(**reply_usage(message))
    update = {"turn": [*changed, message], "ending": ending, "budget": spent.at(time.time())}
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
        closing = request.loop.bound_to(ToolRegistry(), request.protocol)
        message = cast(AIMessage, await closing.ainvoke(prompt, citing(config, state.get("turn") or [])))
    except GraphBubbleUp:
        raise
    except Exception as error:
        logger.warning("the last call of the turn failed: %s: %s", type(error).__name__, error)
        return None
    message = rescue_tool_calls(message, tuple(request.tools))  # calls as text are left out of the answer
    if not message.text.strip():
        return None
    return message.model_copy(update={"tool_calls": [], "invalid_tool_calls": []})


def _asked(state: TurnState) -> list[AnyMessage]:
    """The turn without an empty message at its end."""
    turn = list(state.get("turn") or [])
    while turn and isinstance(turn[-1], AIMessage) and not turn[-1].tool_calls and not turn[-1].invalid_tool_calls:
        turn.pop()
    return turn


def _extracted(reason: str, evidence: Mapping[str, Evidence]) -> AIMessage:
    best = sorted(evidence.values(), key=lambda item: -item.score)[:EXTRACT_COUNT]
    said = f"No answer could be written: {reason}."
    if best:
        passages = [f"- {_shortened(item.text)} [{item.id}]" for item in best]
        said = "\n".join([f"{said} These passages were found:", *passages])
    else:
        said = f"{said} Nothing was found in the documents."
    return AIMessage(said, id=f"extract-{uuid.uuid4()}", response_metadata={"extract": True})


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= EXTRACT_CHARACTERS else f"{line[:EXTRACT_CHARACTERS].rsplit(' ', 1)[0]} …"
