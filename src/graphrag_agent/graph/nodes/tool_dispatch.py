"""Runs the calls that the guard let through."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, cast

from langchain_core.messages import BaseMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.types import Command

from graphrag_agent.graph.eager import EarlyCall
from graphrag_agent.graph.loop import Loop, Request
from graphrag_agent.graph.policy.budget import Spent
from graphrag_agent.graph.policy.pairing import last_calls
from graphrag_agent.graph.policy.result_budget import fit_results, tokens_shown
from graphrag_agent.graph.policy.usage import usage_of
from graphrag_agent.graph.running import run_call
from graphrag_agent.graph.state import TurnState


class SingleCall(TypedDict):
    """What a call that must not be repeated is sent with."""

    call: dict[str, Any]
    ending: str
    budget: dict[str, Any]
    sharing: int
    """Calls of the same tool that run side by side."""


async def tool_dispatch(loop: Loop, state: TurnState | SingleCall, config: RunnableConfig) -> Command[str]:
    """The results of one task's calls, in call order."""
    request, spent = loop.request(), Spent.of(state.get("budget"), now=time.time())
    goto = "summarize_on_max_iterations" if state.get("ending") else "model"
    limit = request.limits.max_evidence_tokens
    if "call" in state:
        sent = cast(SingleCall, state)
        alone = await run_call(request, sent["call"], config, spent, sharing=sent.get("sharing", 1))
        return Command(update={"turn": fit_results([alone], shown=0, limit=limit)}, goto=goto)
    turn, early = state["turn"], state.get("early") or {}
    results = await _run_all(request, _own_calls(request, turn), early, config, spent)
    fitted = fit_results(results, shown=tokens_shown(turn), limit=limit)
    return Command(update={"turn": fitted}, goto=goto)


def _own_calls(request: Request, turn: Sequence[BaseMessage]) -> list[dict[str, Any]]:
    """The server's waiting calls that share a task."""
    server = [call for call in last_calls(turn) if not request.runs_at_client(call["name"])]
    return [call for call in server if not request.travels_alone(call["name"])]


async def _run_all(
    request: Request,
    calls: Sequence[Mapping[str, Any]],
    early: Mapping[str, EarlyCall],
    config: RunnableConfig,
    spent: Spent,
) -> list[ToolMessage]:
    async def run(call: Mapping[str, Any]) -> ToolMessage:
        started = early.get(call["id"])  # after a resume there is nothing to adopt
        task = started.adopt(call) if started else None
        return await task if task else await run_call(request, call, config, spent)

    if request.context.parallel_tool_calls:
        return list(await asyncio.gather(*map(run, calls)))
    results: list[ToolMessage] = []
    for call in calls:
        results.append(await run_call(request, call, config, spent.plus(**usage_of(results))))
    return results
