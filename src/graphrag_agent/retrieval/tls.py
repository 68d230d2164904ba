"""The certificates that requests of this process trust."""

from __future__ import annotations

import ssl
from functools import lru_cache


@lru_cache(maxsize=1)
def tls_context() -> ssl.SSLContext:
    """One for all clients: it is read once, and in a thread, as that takes too long for an event loop."""
    import httpx

    return httpx.create_ssl_context()
