"""Requests that the SDK doesn't walk through, and which requests can be sent that way."""

from __future__ import annotations

import inspect
from functools import cache
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

if TYPE_CHECKING:
    from langchain_openai import ChatOpenAI

    _Model = ChatOpenAI
else:
    _Model = object

PATH = "/chat/completions"
RAW = {"X-Stainless-Raw-Response": "true"}
"""Asks the SDK for the response itself, as its `with_raw_response` does."""

APART = ("extra_body", "extra_headers", "extra_query", "timeout")
"""Arguments of `create` that are no part of the body."""

STAND_IN = HumanMessage("")

LEFT_TO_THE_LIBRARY = (
    "response_format",
    "functions",
    "function_call",
    "audio",
    "modalities",
    "logprobs",
    "top_logprobs",
)
"""Parameters whose replies have parts that are not read here."""


def posted(payload: dict[str, Any]) -> dict[str, Any]:
    """The arguments of the client's `post` for the request that `create(**payload)` would send.

    `create` walks every field of messages and tools first, 100 ms of CPU for 550 messages; `post` sends a body as it
    is. Raises TypeError for a parameter that `create` doesn't know, as `create` does.
    """
    if unknown := sorted(payload.keys() - _create_parameters()):
        raise TypeError(f"the OpenAI SDK's chat.completions.create takes no {', '.join(unknown)}; try `extra_body`")
    body = {name: value for name, value in payload.items() if name not in APART}
    options = {"headers": {**(payload.get("extra_headers") or {}), **RAW}, "security": {"bearer_auth": True}}
    if "extra_query" in payload:
        options["params"] = payload["extra_query"]
    if "timeout" in payload:
        options["timeout"] = payload["timeout"]
    return {
        "path": PATH,
        "body": {**body, **(payload.get("extra_body") or {})},
        "cast_to": object,
        "options": options,
        "stream": bool(payload.get("stream")),
    }


@cache
def _create_parameters() -> frozenset[str]:
    from openai.resources.chat.completions import AsyncCompletions

    return frozenset(inspect.signature(AsyncCompletions.create).parameters)


class LeanRequests(_Model):
    """The payloads of a ChatOpenAI's calls, mixed in before it."""

    def _is_lean(self, kwargs: dict[str, Any]) -> bool:
        """Whether the reply has no parts that only the library reads."""
        params = {**self._default_params, **kwargs}
        return not (
            any(params.get(name) for name in LEFT_TO_THE_LIBRARY)
            or (params.get("n") or 1) > 1
            or self.include_response_headers
            or self.output_version == "v1"
            or getattr(self, "_uses_gateway", False)
            or self._use_responses_api(params)
        )

    def _stream_payload(
        self, messages: list[BaseMessage], stop: list[str] | None, kwargs: dict[str, Any]
    ) -> dict[str, Any]:
        options = {**kwargs, "stream": True}
        if self._should_stream_usage(options.pop("stream_usage", None), **options):
            options["stream_options"] = {"include_usage": True}
        return self._payload(messages, stop, options)

    def _whole_payload(
        self, messages: list[BaseMessage], stop: list[str] | None, kwargs: dict[str, Any]
    ) -> dict[str, Any]:
        payload = self._payload(messages, stop, kwargs)
        return {**payload, "stream": False} if payload.get("stream") else payload

    def _payload(self, messages: list[BaseMessage], stop: list[str] | None, options: dict[str, Any]) -> dict[str, Any]:
        """The library's payload, which never sees the plain messages: it walks an answer character by character."""
        plain = {at: spoken for at, message in enumerate(messages) if (spoken := _spoken(message)) is not None}
        shown = [STAND_IN if at in plain else message for at, message in enumerate(messages)]
        payload = self._get_request_payload(shown, stop=stop, **options)
        for at, spoken in plain.items():
            payload["messages"][at] = spoken
        return payload


def _spoken(message: BaseMessage) -> dict[str, Any] | None:
    """A message that is only what a user or the model said, as it goes over the wire."""
    if not isinstance(message.content, str) or message.additional_kwargs or message.name is not None:
        return None
    if type(message) is HumanMessage:
        return {"content": message.content, "role": "user"}
    if type(message) is AIMessage and not message.tool_calls and not message.invalid_tool_calls:
        return {"content": message.content, "role": "assistant"}
    return None
