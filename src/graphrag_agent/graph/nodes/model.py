"""One call of the chat model with the prompt for this round."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Coroutine, Mapping
from dataclasses import replace
from typing import Any, cast

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphBubbleUp
from langgraph.types import Command

from graphrag_agent.graph.cited_answer import ask_for_citations, is_blank
from graphrag_agent.graph.eager import EagerStart
from graphrag_agent.graph.loop import Loop, Request
from graphrag_agent.graph.policy.budget import Spent, describe_left, seconds_left
from graphrag_agent.graph.policy.calls import call_in_text, tidy_calls
from graphrag_agent.graph.policy.guard import GuardRules, judge_calls
from graphrag_agent.graph.policy.pairing import calls_of
from graphrag_agent.graph.policy.refusal import has_declined
from graphrag_agent.graph.policy.usage import newest_results, with_usage
from graphrag_agent.graph.prompts.building import build_prompt
from graphrag_agent.graph.round import citing, guard_rules, settled
from graphrag_agent.graph.running import run_call
from graphrag_agent.graph.state import TurnState
from graphrag_agent.graph.toolless_call import call_without_tools
from graphrag_agent.models.asking import reply_usage
from graphrag_agent.models.broken_connections import is_broken_connection
from graphrag_agent.models.openai_compatible import is_tools_rejection
from graphrag_agent.models.text_tools.rescue import rescue_tool_calls
from graphrag_agent.tools.registry import ToolRegistry

logger = logging.getLogger(__name__)

STOP = "summarize_on_max_iterations"


async def model(loop: Loop, state: TurnState, config: RunnableConfig) -> Command[str]:
    """The model's message for this round, and where it leads: to its tool calls, or to the answer."""
    request = loop.request()
    turn, changed = settled(request, state.get("turn") or [])
    if changed:
        state = {**state, "turn": turn}
    before = Spent.of(state.get("budget"), now=time.time())
    spent = with_usage(before, newest_results(turn), request.limits)
    left = seconds_left(spent, request.limits, now=time.time())
    if spent.rounds and left <= 0:
        return Command(update={"ending": "max_seconds"}, goto=STOP)
    rules = guard_rules(request, turn, state.get("ledger") or {}, spent)
    eager = None
    try:
        async with asyncio.timeout(left) as clock:
            eager = _eager_start(request, rules, config, spent.plus(rounds=1))
            message = await _call(request, state, rules, spent, _watched(citing(config, turn), eager))
    except BaseException as error:
        if eager:
            eager.cancel()
        if isinstance(error, GraphBubbleUp) or not isinstance(error, Exception):
            raise
        if isinstance(error, TimeoutError) and clock.expired():  # not the provider's own
            return Command(update={"ending": "max_seconds"}, goto=STOP)
        return _failed(error, before)  # the next message counts what the tools spent
    message, spent = await ask_for_citations(request, state, message, spent, config)
    return _next(message, spent, rules, eager, changed)


async def _call(
    request: Request, state: TurnState, rules: GuardRules, spent: Spent, config: RunnableConfig
) -> AIMessage:
    """The model's message. Asked once more where the connection broke, or, with calls as text, no tools were taken."""
    protocol, loop = request.protocol, request.loop
    tools = _offered(request, rules)
    told = [*dict.fromkeys(rules.closed_families.values()), describe_left(spent, request.limits, now=time.time())]
    prompt = build_prompt(
        request.instructions,
        state["messages"],
        rules.turn,
        request.limits,
        summary=state.get("summary"),
        schema_tokens=request.schema_tokens,
        advice=told if rules.turn else (),
    )

    async def ask() -> BaseMessage:
        if not tools:
            return await call_without_tools(loop, prompt, protocol, config)
        return await loop.bound_to(tools, protocol).ainvoke(prompt, config)

    try:
        message = await ask()
    except Exception as error:
        if is_broken_connection(error):
            logger.info("the connection to the model broke (%s); asking once more", type(error).__name__)
        elif protocol == "native" and tools and is_tools_rejection(error):
            logger.info("the provider takes no tools (%s); calls are text from now on", type(error).__name__)
            if not request.context.client_tools:  # a client's schema must not decide for everybody
                loop.remember_rejection()
            protocol = "text"
        else:
            raise
        message = await ask()
    return _with_calls(cast(AIMessage, message), request, prompt, is_offered=bool(tools))


def _with_calls(message: AIMessage, request: Request, prompt: list[BaseMessage], *, is_offered: bool) -> AIMessage:
    """The message with the calls of its text as such. Where no tool was offered they are only left out of the text.

    A native call of a closed tool is left to the guard, which says why; without retrieval there is none to say it.
    """
    read = rescue_tool_calls(message, tuple(request.tools), prompt)
    if is_offered:
        return read
    native = message if request.protocol in ("native", "text") else AIMessage("")
    calls = {"tool_calls": native.tool_calls, "invalid_tool_calls": native.invalid_tool_calls}
    return read.model_copy(update=calls)


def _offered(request: Request, rules: GuardRules) -> ToolRegistry:
    if request.protocol not in ("native", "text"):
        return ToolRegistry()
    if not rules.closed_families:
        return rules.tools
    return ToolRegistry(spec for spec in rules.tools.values() if spec.family not in rules.closed_families)


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


def _eager_start(request: Request, rules: GuardRules, config: RunnableConfig, spent: Spent) -> EagerStart | None:
    """Starts the calls that the guard will let through, by the guard's own verdict."""
    if request.protocol not in ("native", "text") or not request.context.parallel_tool_calls:
        return None
    seen: list[Mapping[str, Any]] = []

    def start(call: Mapping[str, Any]) -> Coroutine[Any, Any, ToolMessage] | None:
        seen.append(call)
        may_start = call["id"] not in rules.asked and judge_calls(seen, rules)[-1].kind == "run"
        return run_call(request, call, config, spent) if may_start and not request.travels_alone(call["name"]) else None

    return EagerStart(start)


def _failed(error: Exception, spent: Spent) -> Command[str]:
    # every turn ends in an answer: the evidence found so far is worth more than a traceback
    logger.warning("the chat model failed: %s: %s", type(error).__name__, error)
    reason = f"the model failed ({type(error).__name__})"  # its text may hold a key, so it is only logged
    return Command(update={"ending": "model_error", "budget": replace(spent, reason=reason).at(time.time())}, goto=STOP)


def _next(
    message: AIMessage, spent: Spent, rules: GuardRules, eager: EagerStart | None, changed: list[AnyMessage]
) -> Command[str]:
    message = tidy_calls(call_in_text(message, rules.turn, rules.tools), rules.turn, rules.tools)
    spent = spent.plus(rounds=1, **reply_usage(message))
    update: dict[str, Any] = {"turn": [*changed, message], "budget": spent.at(time.time())}
    if calls_of(message):
        if eager and eager.started:
            for early in eager.started.values():
                early.lease()
            update["early"] = eager.started
        return Command(update=update, goto="dedupe_guard")
    if eager:
        eager.cancel()
    if has_declined(message):
        update["ending"] = "refused"
        update["budget"] = replace(spent, reason="the model declined to answer").at(time.time())
        return Command(update=update, goto="commit_answer")
    if is_blank(message, rules.turn):
        return Command(update=update, goto=STOP)
    if rules.is_stalled:
        update["ending"] = "no_new_evidence"
    return Command(update=update, goto="commit_answer")
