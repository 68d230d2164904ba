"""An answer that is a stream of events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from starlette.responses import StreamingResponse
from starlette.types import Send

from graphrag_agent.adapters.sse import CONTENT_TYPE

_closing: set[asyncio.Task[Any]] = set()


class EventStream(StreamingResponse):
    """Sends the bytes; when the client has left, the generator is closed at once, not when it is collected."""

    media_type = CONTENT_TYPE

    def __init__(self, content: AsyncGenerator[bytes, None]) -> None:
        # proxies must not wait for the end
        super().__init__(content, headers={"X-Accel-Buffering": "no", "Cache-Control": "no-store"})
        self._content = content

    async def stream_response(self, send: Send) -> None:
        """Send all of it."""
        try:
            await super().stream_response(send)
        finally:
            # in a task of its own: this one may be cancelled, and would be again at each await
            task = asyncio.get_running_loop().create_task(self._content.aclose())
            _closing.add(task)
            task.add_done_callback(_closing.discard)
