"""A fake model with the delays of a real one: `python -m benchmarks.http_load.model_server` prints its port.

It searches once, with the question's words, then writes an answer that cites what it was shown. It ends with its
standard input.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import sys
from collections.abc import Sequence
from typing import Any

from aiohttp import web

FIRST_TOKEN_SECONDS = (0.3, 1.2)
TOKEN_SECONDS = 0.03
"""33 tokens a second, as a hosted model writes."""
ANSWER_TOKENS = 150
WORD = "notice "
_IDS = re.compile(r'<evidence id="([a-z0-9]+)"')


async def complete(request: web.Request) -> web.StreamResponse:
    """One streamed completion."""
    messages = (await request.json())["messages"]
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await asyncio.sleep(random.uniform(*FIRST_TOKEN_SECONDS))
    await response.prepare(request)
    deltas = _answer(messages) if messages[-1]["role"] == "tool" else _search(messages)
    for delta in deltas:
        await response.write(_chunk(delta))
        await asyncio.sleep(TOKEN_SECONDS)
    await response.write(_chunk({}, "stop" if messages[-1]["role"] == "tool" else "tool_calls"))
    await response.write(b"data: [DONE]\n\n")
    return response


def _search(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    question = next(m["content"] for m in reversed(messages) if m["role"] == "user")
    arguments = json.dumps({"query": question[:200]})
    call = {"index": 0, "id": f"call-{random.getrandbits(48):x}", "type": "function"}
    pieces = [arguments[at : at + 12] for at in range(0, len(arguments), 12)]
    first = {"tool_calls": [{**call, "function": {"name": "knowledge_search", "arguments": ""}}]}
    return [first, *({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]} for piece in pieces)]


def _answer(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    found = _IDS.findall(str(messages[-1]["content"]))
    words = [{"content": WORD}] * ANSWER_TOKENS
    return [*words, {"content": f"[{found[0]}]." if found else "nothing."}]


def _chunk(delta: dict[str, Any], finish_reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    body = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    return f"data: {json.dumps(body)}\n\n".encode()


async def serve() -> None:
    """Until standard input ends."""
    app = web.Application(client_max_size=16_000_000)
    app.router.add_post("/v1/chat/completions", complete)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, backlog=1024)
    await site.start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(serve())
