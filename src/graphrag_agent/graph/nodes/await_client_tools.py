"""Hands the calls of the client's tools out, and takes their results in."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.types import Command, interrupt

from graphrag_agent.graph.loop import Loop
from graphrag_agent.graph.policy.budget import Spent
from graphrag_agent.graph.policy.pairing import error_message, last_calls, tool_message
from graphrag_agent.graph.policy.result_budget import fit_results, tokens_shown
from graphrag_agent.graph.state import TurnState


def await_client_tools(loop: Loop, state: TurnState, config: RunnableConfig) -> Command[str]:
    """One interrupt with all waiting calls; resumed with {"results": {call id: result}} or that as JSON text.

    It runs in the same super-step as the server's calls, so the client works while they run; after them where calls run
    one after the other.
    """
    request = loop.request()
    calls = [call for call in last_calls(state["turn"]) if request.runs_at_client(call["name"])]
    asked = [{name: call[name] for name in ("id", "name", "args")} for call in calls]
    results = _results_in(interrupt({"client_tools": asked}))
    messages = [_result_of(call, results) for call in calls]
    limit = request.limits.max_evidence_tokens
    fitted = fit_results(messages, shown=tokens_shown(state["turn"]), limit=limit)
    now = time.time()
    waited = Spent.of(state.get("budget"), now=now).resumed(now)  # the client's time is not the turn's
    goto = "summarize_on_max_iterations" if state.get("ending") else "model"
    return Command(update={"turn": fitted, "budget": waited.at(now)}, goto=goto)


def _results_in(value: Any) -> Mapping[str, Any] | str:
    """The results by call id, or what is wrong with what came."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return "the client's results are not valid JSON"
    results = value.get("results", value) if isinstance(value, Mapping) else None
    return results if isinstance(results, Mapping) else 'the client sent no {"results": {call id: result}}'


def _result_of(call: Mapping[str, Any], results: Mapping[str, Any] | str) -> ToolMessage:
    if isinstance(results, str):
        return error_message(call, "client", results)
    if call["id"] not in results:
        return error_message(call, "client", "the client sent no result")
    result = results[call["id"]]
    return tool_message(
        call, result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, default=str)
    )
