"""Gives every tool call of the round its verdict, and answers those that will not run."""

from __future__ import annotations

import json
import time
from collections import Counter
from typing import Any

from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.types import Command, Send

from graphrag_agent.graph.loop import Loop, Request
from graphrag_agent.graph.policy.budget import Spent, ending_after_batch
from graphrag_agent.graph.policy.guard import Verdict, judge_calls
from graphrag_agent.graph.policy.pairing import error_message, last_calls, tool_message
from graphrag_agent.graph.round import guard_rules
from graphrag_agent.graph.state import TurnState


def dedupe_guard(loop: Loop, state: TurnState, config: RunnableConfig) -> Command[str]:
    """Verdicts for the round: what runs is sent to `tool_dispatch`, what doesn't has its result here."""
    request = loop.request()
    now = time.time()
    turn, spent, ledger = state["turn"], Spent.of(state.get("budget"), now=now), state.get("ledger") or {}
    rules = guard_rules(request, turn, ledger, spent)
    verdicts = judge_calls(last_calls(turn), rules)
    running = [verdict for verdict in verdicts if verdict.runs]
    for id_, early in (state.get("early") or {}).items():
        if id_ not in {verdict.call["id"] for verdict in running}:
            early.cancel()  # the finished message has no such call, or the verdict on it changed
    spent = spent.plus(
        run=len(running),
        reused=sum(verdict.kind in ("reuse", "duplicate") for verdict in verdicts),
        refused=sum(verdict.kind == "refuse" for verdict in verdicts),
    ).plus_families((rules.tools[verdict.call["name"]].family for verdict in running), request.limits)
    ending = ending_after_batch(spent, request.limits)
    if not running and any(verdict.error == "closed" for verdict in verdicts):
        ending = "no_new_evidence"  # it was told, and searches all the same
    answered = [_answer(verdict) for verdict in verdicts if not verdict.runs]
    marks = {verdict.mark: verdict.call["id"] for verdict in running}
    changed = {"turn": answered, "ledger": {**ledger, **marks} if marks else {}, "ending": ending}
    update = {"budget": spent.at(now), **{name: value for name, value in changed.items() if value}}
    if not running:
        return Command(update=update, goto="summarize_on_max_iterations" if ending else "model")
    return Command(update=update, goto=_tasks(request, running, ending, spent.at(now)))


def _tasks(request: Request, running: list[Verdict], ending: str, budget: dict[str, Any]) -> list[str | Send]:
    """One task for the calls that may be repeated after a crash, one for each other call.

    The shared task reads its calls from the state, which keeps them out of the checkpoint a second time. Where calls
    run one after the other, the first one is sent with the others, and each step sends the next.
    """
    server = [dict(verdict.call) for verdict in running if verdict.kind == "run"]
    client_waits = len(server) < len(running)
    if server and not request.context.parallel_tool_calls:
        first = {"call": server[0], "then": server[1:], "client_waits": client_waits}
        return [Send("tool_dispatch", {**first, "ending": ending, "budget": budget})]
    alone = [call for call in server if request.travels_alone(call["name"])]
    alike = Counter(call["name"] for call in alone)
    tasks: list[str | Send] = [
        Send(
            "tool_dispatch",
            {"call": call, "ending": ending, "budget": budget, "sharing": alike[call["name"]]},
        )
        for call in alone
    ]
    if len(alone) < len(server):
        tasks.append("tool_dispatch")
    if client_waits:
        tasks.append("await_client_tools")
    return tasks


def _answer(verdict: Verdict) -> ToolMessage:
    if verdict.kind == "refuse":
        return error_message(verdict.call, verdict.error, verdict.message, retryable=verdict.error == "bad_arguments")
    return tool_message(verdict.call, json.dumps({"note": verdict.message}, ensure_ascii=False))
