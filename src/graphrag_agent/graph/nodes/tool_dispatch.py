"""Runs the calls that the guard let through; whatever goes wrong becomes a message for the model."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from typing import Any, TypedDict, cast

from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.config import get_stream_writer
from langgraph.errors import GraphBubbleUp
from langgraph.types import Command

from graphrag_agent.errors import ToolError
from graphrag_agent.graph.loop import Loop, Request
from graphrag_agent.graph.policy.pairing import error_message, last_calls, tool_message
from graphrag_agent.graph.state import TurnState
from graphrag_agent.tools.evidence_message import read_evidence, rename_collisions
from graphrag_agent.tools.spec import ToolSpec

TRANSIENT = (ConnectionError, TimeoutError)
"""Faults that may be gone at the next try."""


class SingleCall(TypedDict):
    """What a call that must not be repeated is sent with."""

    call: dict[str, Any]
    ending: str


async def tool_dispatch(loop: Loop, state: TurnState | SingleCall, config: RunnableConfig) -> Command[str]:
    """The results of one task's calls, in call order."""
    request = loop.request()
    goto = "summarize_on_max_iterations" if state["ending"] else "model"
    if "call" in state:
        single = cast(SingleCall, state)["call"]
        return Command(update={"turn": [await run_call(request, single, config)]}, goto=goto)
    calls, serial = last_calls(state["turn"]), not request.context.parallel_tool_calls
    if serial:
        results = [await run_call(request, call, config) for call in calls]
    else:
        shared = [call for call in calls if loop.tools[call["name"]].side_effect_free]
        results = await asyncio.gather(*(run_call(request, call, config) for call in shared))
    taken = {item.id: item.chunk_id for item in read_evidence(state["turn"]).values()}
    return Command(update={"turn": _without_collisions(results, taken)}, goto=goto)


async def run_call(request: Request, call: Mapping[str, Any], config: RunnableConfig) -> ToolMessage:
    """The call's result, an error message at worst. It is announced on the custom stream before and after."""
    spec, write = request.loop.tools[call["name"]], get_stream_writer()
    write({"event": "tool_start", "id": call["id"], "name": spec.name, "arguments": call["args"]})
    began = time.perf_counter()
    try:
        async with asyncio.timeout(spec.timeout_seconds):
            result = _as_message(call, await _invoke(spec, request, call, config))
    except GraphBubbleUp:
        raise  # an interrupt of the tool's own belongs to the graph
    except Exception as error:
        result = _failure(spec, call, error)
    hits = (result.artifact or {}).get("hits", ()) if isinstance(result.artifact, dict) else ()
    write(
        {
            "event": "tool_end",
            "id": call["id"],
            "name": spec.name,
            "found": len(hits),
            "is_error": result.status == "error",
            "seconds": round(time.perf_counter() - began, 4),
        }
    )
    return result


async def _invoke(spec: ToolSpec, request: Request, call: Mapping[str, Any], config: RunnableConfig) -> Any:
    arguments = spec.validate(call["args"])
    if "scope" in spec.injected:
        arguments["scope"] = request.scope
    if request.context.top_k is not None and "top_k" in arguments:
        arguments["top_k"] = min(arguments["top_k"], request.context.top_k)
    return await spec.tool.ainvoke({**call, "args": arguments, "type": "tool_call"}, config)


def _as_message(call: Mapping[str, Any], result: Any) -> ToolMessage:
    if isinstance(result, ToolMessage):
        text = result.text if isinstance(result.content, str) else json.dumps(result.content, ensure_ascii=False)
        return tool_message(call, text, result.artifact, is_error=result.status == "error")
    return tool_message(
        call, result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, default=str)
    )


def _failure(spec: ToolSpec, call: Mapping[str, Any], error: Exception) -> ToolMessage:
    retryable = error.retryable if isinstance(error, ToolError) else isinstance(error, TRANSIENT)
    if isinstance(error, TimeoutError) and not str(error):
        return error_message(call, "timeout", f"no result within {spec.timeout_seconds:g} s", retryable=True)
    return error_message(call, type(error).__name__, str(error) or "the tool failed", retryable=retryable)


def _without_collisions(results: list[ToolMessage], taken: dict[str, str]) -> list[ToolMessage]:
    """The results with short ids that are unique in the turn."""
    settled = []
    for result in results:
        if isinstance(result.artifact, dict) and "hits" in result.artifact:
            content, artifact = rename_collisions(result.text, result.artifact, taken)
            result = result.model_copy(update={"content": content, "artifact": artifact})
            taken |= {hit["id"]: hit["chunk_id"] for hit in artifact["hits"]}
        settled.append(result)
    return settled
