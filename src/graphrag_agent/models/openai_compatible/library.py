"""The installed langchain-openai: whether it is as we know it, and its errors."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from langchain_core.messages import AIMessageChunk
from pydantic import BaseModel

HOOKS: dict[str, Callable[[inspect.Signature], object]] = {
    "_convert_chunk_to_generation_chunk": lambda call: call.bind(None, {}, AIMessageChunk, None),
    "_create_chat_result": lambda call: call.bind(None, {}),
    "_ensure_sync_client_available": lambda call: call.bind(None),
    "_get_request_payload": lambda call: call.bind(None, [], stop=None, stream=True),
    "_should_stream": lambda call: call.bind(None, async_api=True, run_manager=None),
    "_should_stream_usage": lambda call: call.bind(None, None),
    "_use_responses_api": lambda call: call.bind(None, {}),
}
"""The methods that our calls need of ChatOpenAI beyond its documented interface, and how they call them."""

FIELDS = (
    "include_response_headers",
    "model_name",
    "output_version",
    "root_async_client",
    "root_client",
    "stream_chunk_timeout",
)
"""The fields that they read."""


def missing_hooks(model_class: type[BaseModel]) -> list[str]:
    """What our calls rely on and this class lacks, or has in another shape."""
    import openai

    missing = [name for name in FIELDS if name not in model_class.model_fields]
    if not isinstance(getattr(model_class, "_default_params", None), property):
        missing.append("_default_params")
    for name, bind in HOOKS.items():
        try:
            bind(inspect.signature(getattr(model_class, name)))
        except (AttributeError, TypeError):
            missing.append(name)
    for client in (openai.OpenAI, openai.AsyncOpenAI):
        lacking = {"path", "body", "cast_to", "options", "stream"} - inspect.signature(client.post).parameters.keys()
        missing += [f"{client.__name__}.post({name})" for name in sorted(lacking)]
    return missing


@contextmanager
def library_errors() -> Iterator[None]:
    """The SDK's errors as ChatOpenAI raises them: its own subclasses, where it has them."""
    import openai
    from langchain_openai.chat_models import base as library

    try:
        yield
    except openai.APIError as error:
        name = "bad_request" if isinstance(error, openai.BadRequestError) else "api_error"
        if translate := getattr(library, f"_handle_openai_{name}", None):
            translate(error)
        raise
