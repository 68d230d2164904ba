"""Runs one tool call; whatever goes wrong becomes a message for the model."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Mapping
from typing import Any

from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.config import get_stream_writer
from langgraph.errors import GraphBubbleUp

from graphrag_agent.errors import ToolError
from graphrag_agent.graph.loop import Request
from graphrag_agent.graph.policy.budget import Spent, seconds_left
from graphrag_agent.graph.policy.pairing import error_message, tool_message
from graphrag_agent.tools.evidence_message import hits_of
from graphrag_agent.tools.progress import running_call
from graphrag_agent.tools.spec import ToolSpec, TurnLeft

TRANSIENT = (ConnectionError, TimeoutError)
"""Faults that may be gone at the next try."""

RETRIES = 1
RETRY_SECONDS = (0.05, 0.3)
"""A short, random wait: several calls of a batch that failed together should not come back together."""


async def run_call(
    request: Request, call: Mapping[str, Any], config: RunnableConfig, spent: Spent, *, sharing: int = 1
) -> ToolMessage:
    """The call's result, an error message at worst. It is announced on the custom stream before and after.

    `sharing`: calls that run side by side and may each spend their part of the tool calls that are left.
    """
    spec, write = request.tools[call["name"]], get_stream_writer()
    write({"event": "tool_start", "id": call["id"], "name": spec.name, "arguments": call["args"]})
    began = time.perf_counter()
    seconds = min(spec.timeout_seconds, max(0.0, seconds_left(spent, request.limits, now=time.time())))
    left = TurnLeft(max(0, request.limits.max_tool_calls - spent.run) // sharing, seconds)
    try:
        async with asyncio.timeout(seconds):
            with running_call(call["id"], spec.name):
                result = await _run(request.loop.tool_for(spec, request.scope), request, call, config, left)
    except GraphBubbleUp:
        raise  # an interrupt of the tool's own belongs to the graph
    except Exception as error:
        result = _failure(call, error, seconds)
    write(
        {
            "event": "tool_end",
            "id": call["id"],
            "name": spec.name,
            "found": len(hits_of(result)),
            "is_error": result.status == "error",
            "seconds": round(time.perf_counter() - began, 4),
        }
    )
    return result


async def _run(
    spec: ToolSpec, request: Request, call: Mapping[str, Any], config: RunnableConfig, left: TurnLeft
) -> ToolMessage:
    arguments = spec.validate(call["args"])
    context = request.context
    given = {
        "scope": request.scope,
        "strategy": context.strategy,
        "rerank": context.rerank,
        "most_hits": request.most_hits,
        "left": left,
    }
    arguments |= {name: value for name, value in given.items() if name in spec.injected}
    if context.top_k is not None and "top_k" in arguments:
        arguments["top_k"] = min(arguments["top_k"], context.top_k)
    retries = RETRIES if spec.side_effect_free else 0
    while True:
        try:
            return await _invoke(spec, call, arguments, config)
        except (ToolError, *TRANSIENT) as error:
            if not retries or not _is_retryable(error):
                raise
            retries -= 1
            await asyncio.sleep(random.uniform(*RETRY_SECONDS))  # noqa: S311  # spreads load, keeps no secret


async def _invoke(
    spec: ToolSpec, call: Mapping[str, Any], arguments: dict[str, Any], config: RunnableConfig
) -> ToolMessage:
    if spec.direct is None or _has_listeners(config):
        return _as_message(call, await spec.tool.ainvoke({**call, "args": arguments, "type": "tool_call"}, config))
    result = await spec.direct(**arguments)
    if getattr(spec.tool, "response_format", "content") == "content_and_artifact":
        text, artifact = result
        return tool_message(call, _as_text(text), artifact)
    return _as_message(call, result)


def _has_listeners(config: RunnableConfig) -> bool:
    """Whether somebody traces the run, who must see the tool's run too (LangChain knows tools as agent actions)."""
    callbacks = config.get("callbacks")
    handlers = callbacks if isinstance(callbacks, list) or callbacks is None else callbacks.handlers
    return any(not handler.ignore_agent for handler in handlers or ())


def _as_message(call: Mapping[str, Any], result: Any) -> ToolMessage:
    if isinstance(result, ToolMessage):
        return tool_message(call, _as_text(result.content), result.artifact, is_error=result.status == "error")
    return tool_message(call, _as_text(result))


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _is_retryable(error: Exception) -> bool:
    return error.retryable if isinstance(error, ToolError) else isinstance(error, TRANSIENT)


def _failure(call: Mapping[str, Any], error: Exception, seconds: float) -> ToolMessage:
    if isinstance(error, TimeoutError) and not str(error):
        return error_message(call, "timeout", f"no result within {seconds:.3g} s", retryable=True)
    return error_message(call, type(error).__name__, str(error) or "the tool failed", retryable=_is_retryable(error))
