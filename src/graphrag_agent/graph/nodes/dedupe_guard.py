"""Gives every tool call of the round its verdict, and answers those that will not run."""

from __future__ import annotations

import json
from typing import Any

from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.types import Command, Send

from graphrag_agent.graph.loop import Loop
from graphrag_agent.graph.policy.budget import Spent, ending_after_batch
from graphrag_agent.graph.policy.guard import Verdict, judge_calls
from graphrag_agent.graph.policy.pairing import error_message, last_calls, tool_message
from graphrag_agent.graph.state import TurnState


def dedupe_guard(loop: Loop, state: TurnState, config: RunnableConfig) -> Command[str]:
    """Verdicts for the round: what runs is sent to `tool_dispatch`, what doesn't has its result here."""
    request = loop.request()
    turn, spent, limits = state["turn"], Spent.of(state.get("budget")), request.limits
    verdicts = judge_calls(
        last_calls(turn),
        request.tools,
        turn=turn,
        ledger=state.get("ledger") or {},
        calls_left=limits.max_tool_calls - spent.run,
        scope_key=request.scope_key,
    )
    running = [verdict for verdict in verdicts if verdict.kind == "run"]
    spent = spent.plus(
        run=len(running),
        reused=sum(verdict.kind in ("reuse", "duplicate") for verdict in verdicts),
        refused=sum(verdict.kind == "refuse" for verdict in verdicts),
    )
    ending = ending_after_batch(spent, limits)
    update: dict[str, Any] = {
        "turn": [_answer(verdict) for verdict in verdicts if verdict.kind != "run"],
        "ledger": {**(state.get("ledger") or {}), **{v.fingerprint: v.call["id"] for v in running}},
        "budget": spent.channel,
        "ending": ending,
    }
    if not running:
        return Command(update=update, goto="summarize_on_max_iterations" if ending else "model")
    return Command(update=update, goto=_tasks(loop, running, ending, serial=not request.context.parallel_tool_calls))


def _tasks(loop: Loop, running: list[Verdict], ending: str, *, serial: bool) -> list[str | Send]:
    """One task for the calls that may be repeated after a crash, one for each other call; one for all when serial.

    The shared task reads its calls from the state, which keeps them out of the checkpoint a second time.
    """
    if serial:
        return ["tool_dispatch"]
    alone = [verdict.call for verdict in running if not loop.tools[verdict.call["name"]].side_effect_free]
    sends: list[str | Send] = [Send("tool_dispatch", {"call": dict(call), "ending": ending}) for call in alone]
    return sends if len(alone) == len(running) else ["tool_dispatch", *sends]


def _answer(verdict: Verdict) -> ToolMessage:
    if verdict.kind == "refuse":
        return error_message(verdict.call, verdict.error, verdict.message, retryable=verdict.error == "bad_arguments")
    return tool_message(verdict.call, json.dumps({"note": verdict.message}, ensure_ascii=False))
