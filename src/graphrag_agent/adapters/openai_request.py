"""What a client of OpenAI's chat completions asks for, as a question, the messages before it and a context."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from graphrag_agent.errors import GraphragError, SettingsError, ThreadBusyError, ThreadError

MAX_MESSAGES = 2_000
EXTENSION = "graphrag"
"""Field of requests and answers for what OpenAI's protocol has no place for."""

_SILENT = ("developer", "system")
"""What they say is the client's wish, not the server's prompt: it is put before the question."""
_TAKEN = {"model", "messages", "stream", "stream_options", "tools", "tool_choice", "n", "user", "metadata", EXTENSION}
_WITHOUT_EFFECT = {
    *("temperature", "top_p", "max_tokens", "max_completion_tokens", "stop", "seed", "presence_penalty"),
    *("frequency_penalty", "logit_bias", "parallel_tool_calls", "store", "service_tier", "reasoning_effort"),
    *("safety_identifier", "prompt_cache_key", "verbosity", "response_format", "logprobs", "top_logprobs"),
    *("modalities", "prediction", "web_search_options", "functions", "function_call", "audio"),
}
_REFUSED_UNLESS = {
    "n": (None, 1),
    "response_format": (None, {"type": "text"}),
    "logprobs": (None, False),
    "top_logprobs": (None, 0),
    "modalities": (None, ["text"]),
    "audio": (None,),
    "functions": (None, []),
    "function_call": (None, "none"),
    "stop": (None, [], ""),
}


class OpenAIRequestError(SettingsError):
    """The request can't be served; `param` names the field."""

    def __init__(self, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.param = param


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One request for a completion."""

    model: str
    question: str
    """Empty where the client brings results of its tools instead."""
    history: tuple[BaseMessage, ...]
    """The questions and answers before it, as the client tells them."""
    thread: str | None
    """A thread of this server that the client names instead of telling its history."""
    results: Mapping[str, str]
    """Tool call id -> result, for a turn that waited."""
    context: Mapping[str, Any]
    """For `AgentContext`, unchecked."""
    stream: bool
    include_usage: bool


def read_chat_request(body: Any, *, allow_tools: bool = False) -> ChatRequest:
    """The request in this JSON body. Raises OpenAIRequestError for what can't be served.

    Unknown fields are refused, as OpenAI does; settings of a model that this agent chooses itself are ignored.
    `graphrag` may hold `thread` and `context`. `tools` become the client's tools where they are allowed.
    """
    if not isinstance(body, Mapping):
        raise OpenAIRequestError("the body must be a JSON object")
    _refuse_fields(body)
    messages = body.get("messages")
    if not isinstance(messages, Sequence) or isinstance(messages, str) or not messages:
        raise OpenAIRequestError("'messages' must be a list with at least one message", "messages")
    if len(messages) > MAX_MESSAGES:
        raise OpenAIRequestError(f"'messages' has {len(messages)} messages; {MAX_MESSAGES} are allowed", "messages")
    extension = _mapping(body, EXTENSION)
    context = dict(_mapping(extension, "context"))
    if tools := body.get("tools"):
        context["client_tools"] = _client_tools(tools, body.get("tool_choice"), allow_tools=allow_tools)
    question, history, results = _conversation(messages)
    thread = extension.get("thread")
    if thread is not None and (not isinstance(thread, str) or not thread.strip()):
        raise OpenAIRequestError(f"{EXTENSION}.thread={thread!r} must be the name of a thread", EXTENSION)
    if results and thread is None:
        raise OpenAIRequestError(f"results of tools need {EXTENSION}.thread: the thread whose turn waits", EXTENSION)
    return ChatRequest(
        model=str(body.get("model") or ""),
        question=question,
        history=history,
        thread=thread,
        results=results,
        context=context,
        stream=_flag(body, "stream"),
        include_usage=_flag(_mapping(body, "stream_options"), "include_usage"),
    )


def error_body(error: Exception) -> tuple[int, dict[str, Any]]:
    """HTTP status and the body in OpenAI's shape. What isn't ours is not told: it may hold secrets."""
    status, kind, code = 500, "server_error", None
    if isinstance(error, ThreadBusyError):
        status, kind, code = 409, "conflict_error", "thread_busy"
    elif isinstance(error, ThreadError):
        status, kind, code = 404, "invalid_request_error", "thread_error"
    elif isinstance(error, SettingsError):
        status, kind = 400, "invalid_request_error"
    told = str(error) if isinstance(error, GraphragError) else "the server could not answer"
    param = error.param if isinstance(error, OpenAIRequestError) else None
    return status, {"error": {"message": told, "type": kind, "param": param, "code": code}}


def models_body(names: Sequence[str], *, created: int = 0) -> dict[str, Any]:
    """The answer of `/v1/models`."""
    models = [{"id": name, "object": "model", "created": created, "owned_by": "graphrag-agent"} for name in names]
    return {"object": "list", "data": models}


def _refuse_fields(body: Mapping[str, Any]) -> None:
    for name, value in body.items():
        if name not in _TAKEN | _WITHOUT_EFFECT:
            raise OpenAIRequestError(f"unrecognized request argument: {str(name)[:80]}", str(name)[:80])
        if name in _REFUSED_UNLESS and value not in _REFUSED_UNLESS[name]:
            raise OpenAIRequestError(f"{name}={value!r:.80} is not supported; leave it out", name)


def _conversation(messages: Sequence[Any]) -> tuple[str, tuple[BaseMessage, ...], dict[str, str]]:
    """The last question, what was said before it, and results of tools that come last."""
    told: list[BaseMessage] = []
    wishes: list[str] = []
    results: dict[str, str] = {}
    for at, message in enumerate(messages):
        place = f"messages[{at}]"
        role = message.get("role") if isinstance(message, Mapping) else None
        if role == "tool":
            results[str(message.get("tool_call_id") or "")] = _text(message.get("content"), place)
            continue
        if role in _SILENT:
            wishes.append(_text(message.get("content"), place))
        elif role == "user":
            told.append(HumanMessage(_text(message.get("content"), place)))
            results = {}
        elif role == "assistant":
            results = {}
            if text := _text(message.get("content"), place, may_be_empty=True):
                told.append(AIMessage(text))
        else:
            raise OpenAIRequestError(f"{place}.role={role!r:.40} is not supported", place)
    if results:
        return "", tuple(told), results
    if not told or not isinstance(told[-1], HumanMessage) or not told[-1].text.strip():
        raise OpenAIRequestError("the last message must be a question of the role 'user'", "messages")
    return "\n\n".join([*wishes, told[-1].text]), tuple(told[:-1]), {}


def _text(content: Any, place: str, *, may_be_empty: bool = False) -> str:
    """The text of a message's content: a string, or parts of the type text."""
    if isinstance(content, str):
        return content
    if content is None and may_be_empty:
        return ""
    if not isinstance(content, Sequence):
        raise OpenAIRequestError(f"{place}.content must be a string or a list of parts", place)
    texts = []
    for part in content:
        kind = part.get("type") if isinstance(part, Mapping) else None
        text = part.get("text") if kind == "text" else part.get("refusal") if kind == "refusal" else None
        if not isinstance(text, str):
            raise OpenAIRequestError(f"{place}.content: parts of the type {kind!r:.40} are not supported", place)
        texts.append(text)
    return "\n".join(texts)


def _client_tools(tools: Any, choice: Any, *, allow_tools: bool) -> tuple[dict[str, Any], ...]:
    if choice == "none":
        return ()
    if not allow_tools:
        raise OpenAIRequestError("'tools' are not supported by this server; leave them out", "tools")
    if choice not in (None, "auto"):
        raise OpenAIRequestError(
            f"tool_choice={choice!r:.80} is not supported; only 'auto' and 'none' are", "tool_choice"
        )
    if not isinstance(tools, Sequence) or not all(
        isinstance(tool, Mapping) and tool.get("type") == "function" and isinstance(tool.get("function"), Mapping)
        for tool in tools
    ):
        raise OpenAIRequestError("'tools' must be a list of tools of the type 'function'", "tools")
    return tuple(dict(tool["function"]) for tool in tools)


def _mapping(given: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = given.get(name)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise OpenAIRequestError(f"{name!r} must be an object", name)
    return value


def _flag(given: Mapping[str, Any], name: str) -> bool:
    value = given.get(name)
    if value is not None and not isinstance(value, bool):
        raise OpenAIRequestError(f"{name}={value!r:.80} must be true or false", name)
    return bool(value)
