"""One call of the chat model with the prompt for this round."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Sequence
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphBubbleUp
from langgraph.types import Command

from graphrag_agent.graph.loop import Loop
from graphrag_agent.graph.policy.budget import Spent, is_out_of_time
from graphrag_agent.graph.policy.pairing import calls_of
from graphrag_agent.graph.prompts.building import build_prompt
from graphrag_agent.graph.state import TurnState
from graphrag_agent.tools.registry import ToolRegistry

logger = logging.getLogger(__name__)


async def model(loop: Loop, state: TurnState, config: RunnableConfig) -> Command[str]:
    """The model's message for this round, and where it leads: to its tool calls, or to the answer."""
    request = loop.request()
    turn, spent = state.get("turn") or [], Spent.of(state.get("budget"))
    if is_out_of_time(spent, request.limits, now=time.time()):
        return Command(update={"ending": "max_seconds"}, goto="summarize_on_max_iterations")
    tools = request.tools if request.protocol == "native" else ToolRegistry()
    try:
        prompt = build_prompt(request.protocol, state["messages"], turn)
        message = cast(AIMessage, await loop.bound_to(tools).ainvoke(prompt, config))
    except GraphBubbleUp:
        raise
    except Exception as error:
        # every turn ends in an answer: the evidence found so far is worth more than a traceback
        logger.warning("the chat model failed: %s: %s", type(error).__name__, error)
        return Command(update={"ending": "model_error"}, goto="summarize_on_max_iterations")
    message = with_fresh_ids(message, turn)
    update = {"turn": [message], "budget": _after_round(spent, message).channel}
    return Command(update=update, goto=_next_node(message))


def with_fresh_ids(message: AIMessage, turn: Sequence[BaseMessage]) -> AIMessage:
    """The message with an id for each of its calls: models repeat ids and leave them out."""
    used = {call["id"] for earlier in turn for call in calls_of(earlier)}

    def fresh(calls: Sequence[Any]) -> list[dict[str, Any]]:
        renamed = []
        for call in calls:
            id_ = call["id"] if call["id"] and call["id"] not in used else f"call_{uuid.uuid4().hex[:12]}"
            used.add(id_)
            renamed.append({**call, "id": id_, "name": call["name"] or "?"})
        return renamed

    update = {"tool_calls": fresh(message.tool_calls), "invalid_tool_calls": fresh(message.invalid_tool_calls)}
    return message.model_copy(update=update)


def _after_round(spent: Spent, message: AIMessage) -> Spent:
    usage = message.usage_metadata or {"input_tokens": 0, "output_tokens": 0}
    return spent.plus(rounds=1, input_tokens=usage["input_tokens"], output_tokens=usage["output_tokens"])


def _next_node(message: AIMessage) -> str:
    if calls_of(message):
        return "dedupe_guard"
    return "commit_answer" if message.text.strip() else "summarize_on_max_iterations"
