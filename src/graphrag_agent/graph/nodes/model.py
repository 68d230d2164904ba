"""One call of the chat model with the prompt for this round."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphBubbleUp
from langgraph.types import Command

from graphrag_agent.graph.eager import EagerStart
from graphrag_agent.graph.loop import Loop, Request
from graphrag_agent.graph.policy.budget import Spent, describe_left, seconds_left
from graphrag_agent.graph.policy.calls import call_in_text, tidy_calls
from graphrag_agent.graph.policy.guard import judge_calls
from graphrag_agent.graph.policy.pairing import calls_of
from graphrag_agent.graph.policy.refusal import refusal_of
from graphrag_agent.graph.prompts.building import build_prompt
from graphrag_agent.graph.round import closed_families, guard_rules
from graphrag_agent.graph.running import run_call
from graphrag_agent.graph.state import TurnState
from graphrag_agent.tools.registry import ToolRegistry

logger = logging.getLogger(__name__)

STOP = "summarize_on_max_iterations"


async def model(loop: Loop, state: TurnState, config: RunnableConfig) -> Command[str]:
    """The model's message for this round, and where it leads: to its tool calls, or to the answer."""
    request = loop.request()
    turn, spent = state.get("turn") or [], Spent.of(state.get("budget"), now=time.time())
    left = seconds_left(spent, request.limits, now=time.time())
    if spent.rounds and left <= 0:
        return Command(update={"ending": "max_seconds"}, goto=STOP)
    closed = closed_families(request, turn)
    tools = _offered(request, closed)
    advice = [*closed.values(), describe_left(spent, request.limits, now=time.time())] if turn else []
    prompt = build_prompt(request.protocol, state["messages"], turn, advice=advice)
    eager = EagerStart(_starter(request, state, config)) if tools and request.context.parallel_tool_calls else None
    try:
        message = await _call(loop, tools, prompt, _watched(config, eager), seconds=left)
    except BaseException as error:
        if eager:
            eager.cancel()
        if isinstance(error, GraphBubbleUp) or not isinstance(error, Exception):
            raise
        return _failed(error, spent)
    return _next(message, spent, turn, request, eager, is_closed=bool(closed))


def _offered(request: Request, closed: Mapping[str, str]) -> ToolRegistry:
    if request.protocol != "native":
        return ToolRegistry()
    tools = request.tools
    return ToolRegistry(spec for spec in tools.values() if spec.family not in closed) if closed else tools


async def _call(
    loop: Loop, tools: ToolRegistry, prompt: Sequence[BaseMessage], config: RunnableConfig, *, seconds: float
) -> AIMessage:
    try:
        async with asyncio.timeout(seconds) as clock:
            return cast(AIMessage, await loop.bound_to(tools).ainvoke(prompt, config))
    except TimeoutError:
        if clock.expired():
            raise _TurnTimeoutError from None
        raise  # the provider's own timeout


class _TurnTimeoutError(Exception):
    """The turn's time ran out while the model was speaking."""


def _watched(config: RunnableConfig, eager: EagerStart | None) -> RunnableConfig:
    """The config whose callbacks see the stream of this one call."""
    callbacks = config.get("callbacks")
    if eager is None:
        return config
    if callbacks is None or isinstance(callbacks, list):
        return {**config, "callbacks": [*(callbacks or ()), eager]}
    callbacks = callbacks.copy()
    callbacks.add_handler(eager, inherit=True)
    return {**config, "callbacks": callbacks}


def _starter(request: Request, state: TurnState, config: RunnableConfig) -> Any:
    """Starts the calls that the guard will let through, by the guard's own verdict."""
    spent = Spent.of(state.get("budget"), now=time.time()).plus(rounds=1)
    rules = guard_rules(request, state.get("turn") or [], state.get("ledger") or {}, spent)
    seen: list[Mapping[str, Any]] = []

    def start(call: Mapping[str, Any]) -> Coroutine[Any, Any, ToolMessage] | None:
        seen.append(call)
        may_start = call["id"] not in rules.asked and judge_calls(seen, rules)[-1].kind == "run"
        if not may_start or not rules.tools[call["name"]].side_effect_free:
            return None
        return run_call(request, call, config, spent)

    return start


def _failed(error: Exception, spent: Spent) -> Command[str]:
    if isinstance(error, _TurnTimeoutError):
        return Command(update={"ending": "max_seconds"}, goto=STOP)
    # every turn ends in an answer: the evidence found so far is worth more than a traceback
    logger.warning("the chat model failed: %s: %s", type(error).__name__, error)
    reason = f"the model failed ({type(error).__name__})"  # its text may hold a key, so it is only logged
    return Command(update={"ending": "model_error", "budget": replace(spent, reason=reason).at(time.time())}, goto=STOP)


def _next(
    message: AIMessage,
    spent: Spent,
    turn: Sequence[BaseMessage],
    request: Request,
    eager: EagerStart | None,
    *,
    is_closed: bool,
) -> Command[str]:
    message = tidy_calls(call_in_text(message, turn, request.tools), turn, request.tools)
    usage = message.usage_metadata or {"input_tokens": 0, "output_tokens": 0}
    spent = spent.plus(rounds=1, input_tokens=usage["input_tokens"], output_tokens=usage["output_tokens"])
    update: dict[str, Any] = {"turn": [message], "budget": spent.at(time.time())}
    if calls_of(message):
        if eager and eager.started:
            for early in eager.started.values():
                early.lease()
            update["early"] = eager.started
        return Command(update=update, goto="dedupe_guard")
    if eager:
        eager.cancel()
    if refusal := refusal_of(message):
        refused = {"content": message.text.strip() or refusal}
        update |= {"turn": [message.model_copy(update=refused)], "ending": "refused"}
        update["budget"] = replace(spent, reason="the model declined to answer").at(time.time())
        return Command(update=update, goto="commit_answer")
    if not message.text.strip():
        return Command(update=update, goto=STOP)
    if is_closed:
        update["ending"] = "no_new_evidence"
    return Command(update=update, goto="commit_answer")
