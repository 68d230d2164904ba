"""Runs the calls that the guard let through."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, cast

from langchain_core.messages import BaseMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.types import Command, Send

from graphrag_agent.graph.eager import EarlyCall
from graphrag_agent.graph.loop import Loop, Request
from graphrag_agent.graph.policy.budget import Spent
from graphrag_agent.graph.policy.pairing import last_calls
from graphrag_agent.graph.policy.result_budget import fit_results, tokens_shown
from graphrag_agent.graph.policy.usage import with_usage
from graphrag_agent.graph.running import run_call
from graphrag_agent.graph.state import TurnState


class SingleCall(TypedDict, total=False):
    """What a call that must not be repeated is sent with."""

    call: dict[str, Any]
    ending: str
    budget: dict[str, Any]
    sharing: int
    """Calls of the same tool that run side by side."""
    then: list[dict[str, Any]]
    """Calls that come after it, one after the other."""
    client_waits: bool
    """Whether the client's calls come after them."""


async def tool_dispatch(loop: Loop, state: TurnState | SingleCall, config: RunnableConfig) -> Command[str]:
    """The results of one task's calls, in call order; where calls run one after the other, the next one is sent."""
    request, spent = loop.request(), Spent.of(state.get("budget"), now=time.time())
    if "call" in state:
        return await _run_single(request, cast(SingleCall, state), config, spent)
    state = cast(TurnState, state)
    turn, early = state["turn"], state.get("early") or {}
    results = await _run_all(request, _own_calls(request, turn), early, config, spent)
    fitted = fit_results(results, shown=tokens_shown(turn), limit=request.limits.max_evidence_tokens)
    return Command(update={"turn": fitted}, goto=_onward(state.get("ending")))


def _onward(ending: str | None) -> str:
    return "summarize_on_max_iterations" if ending else "model"


async def _run_single(request: Request, sent: SingleCall, config: RunnableConfig, spent: Spent) -> Command[str]:
    result = await run_call(request, sent["call"], config, spent, sharing=sent.get("sharing", 1))
    update = {"turn": fit_results([result], shown=0, limit=request.limits.max_evidence_tokens)}
    after = _after(sent, with_usage(spent, [result], request.limits))
    return Command(update=update, goto=after or _onward(sent.get("ending")))


def _after(sent: SingleCall, spent: Spent) -> str | Send | None:
    """The next of the calls that run one after the other, each in a step of its own; then the client's."""
    if rest := sent.get("then"):
        return Send("tool_dispatch", {**sent, "call": rest[0], "then": rest[1:], "budget": spent.at(time.time())})
    return "await_client_tools" if sent.get("client_waits") else None


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

    return list(await asyncio.gather(*map(run, calls)))
