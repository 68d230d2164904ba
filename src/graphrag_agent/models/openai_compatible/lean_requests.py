"""Requests that the SDK doesn't walk through, and which requests can be sent that way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_core.messages import BaseMessage

if TYPE_CHECKING:
    from langchain_openai import ChatOpenAI

    _Model = ChatOpenAI
else:
    _Model = object

WALKED = ("messages", "tools")
"""What the SDK checks field by field: 100 ms of CPU for 550 messages. In `extra_body` it is sent as it is."""

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


def slim(payload: dict[str, Any]) -> dict[str, Any]:
    """The same request for `create`, with the long parts where the SDK doesn't look at them."""
    long = {name: payload[name] for name in WALKED if name in payload}
    rest = {name: value for name, value in payload.items() if name not in long}
    return {**rest, "messages": [], "extra_body": {**long, **(payload.get("extra_body") or {})}}


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
        return self._get_request_payload(messages, stop=stop, **options)

    def _whole_payload(
        self, messages: list[BaseMessage], stop: list[str] | None, kwargs: dict[str, Any]
    ) -> dict[str, Any]:
        payload = self._get_request_payload(messages, stop=stop, **kwargs)
        return {**payload, "stream": False} if payload.get("stream") else payload
