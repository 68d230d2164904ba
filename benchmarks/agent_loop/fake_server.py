"""The fake model as an OpenAI-compatible server of its own process: `python -m benchmarks.agent_loop.fake_server`.

The request's model name is `SCRIPT@GAP`: which script answers, and how many milliseconds lie between two tokens of a
stream. What is sent is made once and kept as bytes; only ids are new in each message. It ends with its standard input.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.agent_loop.script import CALL_DONE_SECONDS, MESSAGE_DONE_SECONDS, Reply, reply_to

ID = b"@@ID@@"
PIECE_CHARACTERS = 7
LATE_TIMER_SECONDS = 0.025
"""So long before a moment that counts the server stays awake."""
USAGE = {"prompt_tokens": 1000, "completion_tokens": 200, "total_tokens": 1200}
STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"

_numbers = itertools.count(1)


@contextmanager
def running_server() -> Iterator[str]:
    """The base URL of a server that runs until the end of the block."""
    process = subprocess.Popen(
        [sys.executable, "-m", __name__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )
    with process:
        assert process.stdin and process.stdout
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
        process.stdin.close()


class Connection(asyncio.Protocol):
    """One kept-alive connection; requests come one after the other."""

    requests = 0

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._body_at = self._body_bytes = 0
        self._answering: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keeps the transport."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        """A client that went away gets no more."""
        if self._answering:
            self._answering.cancel()

    def data_received(self, data: bytes) -> None:
        """Answers when the request is complete."""
        self._buffer += data
        if not self._body_at:
            head, found, _ = self._buffer.partition(b"\r\n\r\n")
            if not found:
                return
            lines = bytes(head).lower().split(b"\r\n")
            length = next((line for line in lines if line.startswith(b"content-length:")), b":0")
            self._body_at, self._body_bytes = len(head) + 4, int(length.partition(b":")[2])
        if len(self._buffer) >= self._body_at + self._body_bytes:
            body = bytes(self._buffer[self._body_at :])
            self._buffer.clear()
            self._body_at = 0
            self._answering = asyncio.get_running_loop().create_task(self._answer(body))

    async def _answer(self, body: bytes) -> None:
        if not body:  # GET: how many requests there were
            self._send_json(str(Connection.requests).encode())
            return
        Connection.requests += 1
        request = json.loads(body)
        script, _, gap = request["model"].partition("@")
        reply = reply_to(script, request["messages"], has_tools=bool(request.get("tools")))
        marked = json.dumps(reply)
        id_ = b"%08d" % next(_numbers)
        if not request.get("stream"):
            if reply.spread:
                await _wait_until(asyncio.get_running_loop().time() + MESSAGE_DONE_SECONDS)
            self._send_json(whole_message(marked).replace(ID, id_))
            return
        with_usage = bool((request.get("stream_options") or {}).get("include_usage"))
        await self._stream(stream_frames(marked, with_usage), id_, float(gap or 0) / 1000)

    async def _stream(self, frames: list[tuple[float, bytes]], id_: bytes, gap: float) -> None:
        """Each frame at its moment: its own, or its number times the gap. Without a gap all at once."""
        self._transport.write(STREAM_HEAD)
        if not gap and not frames[-1][0]:
            self._transport.write(b"".join(frame for _, frame in frames).replace(ID, id_))
            return
        loop = asyncio.get_running_loop()
        began = loop.time()
        for number, (moment, frame) in enumerate(frames):
            if moment:
                await _wait_until(began + moment)
            else:
                await asyncio.sleep(max(0.0, began + number * gap - loop.time()))
            self._transport.write(frame.replace(ID, id_))

    def _send_json(self, data: bytes) -> None:
        head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(data)}\r\n\r\n"
        self._transport.write(head.encode() + data)


async def _wait_until(moment: float) -> None:
    """To the tenth of a millisecond: there are machines whose timers are late by 15 ms, whoever waits for them."""
    loop = asyncio.get_running_loop()
    await asyncio.sleep(moment - loop.time() - LATE_TIMER_SECONDS)
    while loop.time() < moment:  # noqa: ASYNC110  # there is no event to wait for, only the clock
        await asyncio.sleep(0)


@cache
def whole_message(marked: str) -> bytes:
    """The reply (as JSON) as a completion, with a mark where ids go."""
    reply = Reply(*json.loads(marked))
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
    if reply.calls:
        message["tool_calls"] = [_call(place, call) for place, call in enumerate(reply.calls)]
    choice = {"index": 0, "message": message, "finish_reason": _finish_reason(reply)}
    return json.dumps({**_head("chat.completion"), "choices": [choice], "usage": USAGE}).encode()


@cache
def stream_frames(marked: str, with_usage: bool) -> list[tuple[float, bytes]]:
    """The reply (as JSON) as HTTP chunks: the second at which each is due (0: as the gap says), and its bytes."""
    reply = Reply(*json.loads(marked))
    events = [(moment, _chunk(delta)) for moment, delta in _deltas(reply)]
    end = MESSAGE_DONE_SECONDS if reply.spread else 0.0
    events.append((end, _chunk({}, _finish_reason(reply))))
    if with_usage:
        events.append((end, json.dumps({**_head("chat.completion.chunk"), "choices": [], "usage": USAGE})))
    events.append((end, "[DONE]"))
    frames = [(moment, _http_chunk(f"data: {event}\n\n".encode())) for moment, event in events]
    frames[-1] = (frames[-1][0], frames[-1][1] + b"0\r\n\r\n")
    return frames


def _deltas(reply: Reply) -> Iterator[tuple[float, dict[str, Any]]]:
    yield 0.0, {"role": "assistant", "content": ""}
    for place, arguments in enumerate(reply.calls):
        call = _call(place, arguments)
        text = call["function"]["arguments"]
        yield 0.0, {"tool_calls": [{**call, "index": place, "function": {**call["function"], "arguments": ""}}]}
        for at in range(0, len(text), PIECE_CHARACTERS):
            moment = CALL_DONE_SECONDS if reply.spread else 0.0
            piece = {"index": place, "function": {"arguments": text[at : at + PIECE_CHARACTERS]}}
            yield moment, {"tool_calls": [piece]}
    pieces = reply.text.split(" ") if reply.text else []
    for place, word in enumerate(pieces):
        share = (place + 1) / (len(pieces) + 1)
        moment = CALL_DONE_SECONDS + share * (MESSAGE_DONE_SECONDS - CALL_DONE_SECONDS) if reply.spread else 0.0
        yield moment, {"content": word if place == len(pieces) - 1 else word + " "}


def _call(place: int, arguments: dict[str, Any]) -> dict[str, Any]:
    function = {"name": "knowledge_search", "arguments": json.dumps(arguments, ensure_ascii=False)}
    return {"id": f"call_{ID.decode()}{place}", "type": "function", "function": function}


def _chunk(delta: dict[str, Any], finish_reason: str | None = None) -> str:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    return json.dumps({**_head("chat.completion.chunk"), "choices": [choice]})


def _head(kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{ID.decode()}", "object": kind, "created": 1, "model": "scripted"}


def _finish_reason(reply: Reply) -> str:
    return "tool_calls" if reply.calls else "stop"


def _http_chunk(data: bytes) -> bytes:
    size = len(data) - (len(ID) - 8) * data.count(ID)  # an id has eight digits
    return f"{size:x}\r\n".encode() + data + b"\r\n"


async def _serve() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Connection, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(_serve())
