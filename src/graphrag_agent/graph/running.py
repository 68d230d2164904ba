"""Runs one tool call; whatever goes wrong becomes a message for the model."""

from __future__ import annotations

import asyncio
import functools
import json
import logging
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from contextvars import copy_context
from typing import Any

from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool, Tool
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.config import get_stream_writer
from langgraph.errors import GraphBubbleUp
from langgraph.types import Command

from graphrag_agent.errors import ToolError, ToolFailedError
from graphrag_agent.events import LoopEvent
from graphrag_agent.graph.loop import Request
from graphrag_agent.graph.policy.budget import Spent, family_calls_left, seconds_left
from graphrag_agent.graph.policy.pairing import error_message, tool_message
from graphrag_agent.own_threads import OwnThreads
from graphrag_agent.tools.evidence_message import are_hits, hits_of
from graphrag_agent.tools.progress import running_call
from graphrag_agent.tools.spec import ToolSpec, TurnLeft

logger = logging.getLogger(__name__)

TRANSIENT = (ConnectionError, TimeoutError)
"""Faults that may be gone at the next try."""

RETRIES = 1
RETRY_SECONDS = (0.05, 0.3)
"""A short, random wait: several calls of a batch that failed together should not come back together."""

_NO_TEXTS = ("image", "image_url", "audio", "video", "file")
_LEFT_OUT = "[%s left out: only text is shown]"

MOST_THREADS = 64
"""Of sync tools that run at the same time; those that hang keep theirs for as long as they do."""

_threads = OwnThreads(MOST_THREADS, "graphrag-agent-tools")

_SERIALIZER = JsonPlusSerializer()
"""What checkpointers write with."""


async def run_call(
    request: Request,
    call: Mapping[str, Any],
    config: RunnableConfig,
    spent: Spent,
    *,
    sharing: int = 1,
    least_seconds: float = 0.0,
) -> ToolMessage:
    """The call's result, an error message at worst. It is announced on the custom stream before and after.

    `sharing`: calls that run side by side and may each spend their part of the tool calls that are left.
    `least_seconds`: what it has even where the turn's own time is over.
    """
    spec, write = request.tools[call["name"]], get_stream_writer()
    write(LoopEvent(event="tool_start", id=call["id"], name=spec.name, arguments=call["args"]))
    began = time.perf_counter()
    seconds = min(spec.timeout_seconds, max(least_seconds, seconds_left(spent, request.limits, now=time.time())))
    families = {name: max(0, most) // sharing for name, most in family_calls_left(spent, request.limits).items()}
    left = TurnLeft(max(0, request.limits.max_tool_calls - spent.run) // sharing, seconds, families)
    try:
        async with asyncio.timeout(seconds):
            with running_call(call["id"], spec.name):
                result = await _run(request.loop.tool_for(spec, request.scope), request, call, config, left)
    except GraphBubbleUp:
        raise  # an interrupt of the tool's own belongs to the graph
    except asyncio.CancelledError as error:
        if (task := asyncio.current_task()) is None or task.cancelling():
            raise
        result = _failure(spec, call, error, seconds)  # the tool's own, as from a scope or a task that it cancelled
    except (Exception, SystemExit) as error:  # a library's sys.exit would end the process, or every agent's loop
        result = _failure(spec, call, error, seconds)
    write(
        LoopEvent(
            event="tool_end",
            id=call["id"],
            name=spec.name,
            found=len(hits_of(result)),
            is_error=result.status == "error",
            seconds=round(time.perf_counter() - began, 4),
        )
    )
    return result


async def _run(
    spec: ToolSpec, request: Request, call: Mapping[str, Any], config: RunnableConfig, left: TurnLeft
) -> ToolMessage:
    direct = None if _has_listeners(config) else spec.direct
    retries = RETRIES if spec.side_effect_free else 0
    while True:
        try:
            # anew for each try: the last one may have changed them
            arguments = _arguments(spec, request, call["args"], left, is_direct=direct is not None)
            return await _invoke(spec, direct, call, arguments, config)
        except (ToolError, *TRANSIENT) as error:
            if not retries or not _is_retryable(error):
                raise
            retries -= 1
            await asyncio.sleep(random.uniform(*RETRY_SECONDS))  # noqa: S311  # spreads load, keeps no secret


def _arguments(
    spec: ToolSpec, request: Request, given: Mapping[str, Any], left: TurnLeft, *, is_direct: bool
) -> dict[str, Any]:
    """What the tool is called with: the model's arguments, and those that the loop fills in."""
    context, values = request.context, spec.values(given)
    narrowed = {}
    top_k = values.get("top_k")  # of a user's tool it may be anything
    if context.top_k is not None and isinstance(top_k, int) and not isinstance(top_k, bool):
        narrowed = {"top_k": min(top_k, context.top_k)}
    ours = {
        "scope": request.scope,
        "strategy": context.strategy,
        "rerank": context.rerank,
        "most_hits": request.most_hits,
        "left": left,
    }
    filled = {name: value for name, value in ours.items() if name in spec.injected}
    return {**values, **narrowed, **filled} if is_direct else {**spec.unread({**given, **narrowed}), **filled}


async def _invoke(
    spec: ToolSpec,
    direct: Callable[..., Awaitable[Any]] | None,
    call: Mapping[str, Any],
    arguments: dict[str, Any],
    config: RunnableConfig,
) -> ToolMessage:
    if direct is None:
        asked = {**call, "args": arguments, "type": "tool_call"}
        if _is_sync(spec.tool):
            return _as_message(call, await _threads.run(copy_context().run, _invoke_here, spec.tool, asked, config))
        return _as_message(call, await _unexiting(spec.tool).ainvoke(asked, config))
    result = await direct(**arguments)
    if getattr(spec.tool, "response_format", "content") == "content_and_artifact":
        text, artifact = result
        return tool_message(call, _as_text(text), _storable(call, artifact))
    return _as_message(call, result)


def _is_sync(tool: BaseTool) -> bool:
    if isinstance(tool, StructuredTool | Tool):
        return tool.coroutine is None
    return type(tool)._arun is BaseTool._arun


def _invoke_here(tool: BaseTool, asked: dict[str, Any], config: RunnableConfig) -> Any:
    """The tool's result, in a thread of ours.

    LangChain takes those of the event loop, where tools that hang would hold up whatever has no others: look-ups of
    names, the knowledge base.
    """
    try:
        return tool.invoke(asked, config)
    except SystemExit as error:
        raise ToolFailedError(_exited(error)) from error
    except StopIteration as error:  # no future can hold one
        raise RuntimeError(str(error)) from error


def _unexiting(tool: BaseTool) -> BaseTool:
    """The tool with its `sys.exit` as an error: LangChain runs it in a task, through which an exit ends the loop."""

    @functools.wraps(tool._arun)
    async def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return await tool._arun(*args, **kwargs)
        except SystemExit as error:
            raise ToolFailedError(_exited(error)) from error

    copy = tool.model_copy()
    object.__setattr__(copy, "_arun", run)
    return copy


def _exited(error: SystemExit) -> str:
    return f"the tool called sys.exit({error.code!r})"


def _has_listeners(config: RunnableConfig) -> bool:
    """Whether somebody traces the run, who must see the tool's run too (LangChain knows tools as agent actions)."""
    callbacks = config.get("callbacks")
    handlers = callbacks if isinstance(callbacks, list) or callbacks is None else callbacks.handlers
    return any(not handler.ignore_agent for handler in handlers or ())


def _as_message(call: Mapping[str, Any], result: Any) -> ToolMessage:
    if isinstance(result, ToolMessage):
        artifact, is_error = _storable(call, result.artifact), result.status == "error"
        return tool_message(call, _as_text(result.content), artifact, is_error=is_error)
    if any(isinstance(part, Command) for part in (result if isinstance(result, list) else [result])):
        raise ToolFailedError("the tool returned a Command, which this graph doesn't follow; its result is lost")
    return tool_message(call, _as_text(result))


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if value and isinstance(value, list) and all(map(_is_block, value)):
        return "\n".join(block["text"] if block["type"] == "text" else _LEFT_OUT % block["type"] for block in value)
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError):  # keys that JSON hasn't, a list in itself; the tool has done its work all the same
        return str(value)


def _is_block(value: Any) -> bool:
    """Whether it is a content block, as tools of MCP servers give: of a picture the model would read the bytes."""
    if not isinstance(value, Mapping):
        return False
    if value.get("type") == "text":
        return isinstance(value.get("text"), str)
    has_bytes = (
        isinstance(value.get("base64"), str) or "mime_type" in value or ";base64," in str(value.get("image_url"))
    )
    return value.get("type") in _NO_TEXTS and has_bytes


def _storable(call: Mapping[str, Any], artifact: Any) -> Any:
    """As much of the artifact as a checkpointer can write down: what it can't, such as a DataFrame, ends the turn."""
    if isinstance(artifact, Mapping) and not are_hits(artifact.get("hits")):
        logger.warning("the artifact of %r has hits that are no evidence; they are left out", call["name"])
        artifact = {name: value for name, value in artifact.items() if name != "hits"}
    if artifact is None or _can_be_written(artifact):
        return artifact
    told = "the artifact of %r has a %s, which no checkpointer can write down; it is left out"
    if not isinstance(artifact, Mapping):
        logger.warning(told, call["name"], type(artifact).__name__)
        return None
    kept = {name: value for name, value in artifact.items() if _can_be_written({name: value})}
    for name in artifact.keys() - kept.keys():
        logger.warning(told, call["name"], type(artifact[name]).__name__)
    return kept


def _can_be_written(value: Any) -> bool:
    try:
        _SERIALIZER.dumps_typed(value)
    except Exception:  # of an object's own methods too
        return False
    return True


def _is_retryable(error: BaseException) -> bool:
    return error.retryable if isinstance(error, ToolError) else isinstance(error, TRANSIENT)


def _failure(spec: ToolSpec, call: Mapping[str, Any], error: BaseException, seconds: float) -> ToolMessage:
    if isinstance(error, SystemExit):
        error = ToolFailedError(_exited(error))
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]  # a task group, as every client of an MCP server is, says only how many there were
    words = _words_of(error)
    kind, told = type(error).__name__, words or "the tool failed"
    if isinstance(error, TimeoutError) and not words:
        kind, told = "timeout", f"no result within {seconds:.3g} s"
    if not spec.side_effect_free and isinstance(error, TRANSIENT):  # called again, it might happen twice
        return error_message(call, kind, f"{told}; it may have happened all the same", retryable=False)
    return error_message(call, kind, told, retryable=_is_retryable(error))


def _words_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # its own method fails
        return ""
