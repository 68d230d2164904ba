"""Which failures of a model may be gone at the next try."""

from __future__ import annotations

NAMES = ("APIConnectionError", "RemoteProtocolError", "ReadError")
"""Of the OpenAI SDK and of HTTP clients, by name: none of them need be installed."""

TRIED_AGAIN_ALREADY = ("APITimeoutError",)
"""The SDK retries these itself; a stream that breaks in the middle it does not."""


def is_broken_connection(error: BaseException) -> bool:
    """Whether the connection to the provider broke, so that asking again can help."""
    names = [kind.__name__ for kind in type(error).__mro__]
    if any(name in TRIED_AGAIN_ALREADY for name in names):
        return False
    return isinstance(error, ConnectionError) or any(name in NAMES for name in names)
