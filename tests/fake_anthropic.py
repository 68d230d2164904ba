"""Anthropic's Messages API on loopback: plays a script of content blocks, and refuses what the real one refuses.

The rules are those of its documentation ("Handle tool calls", "Tool use with Claude") and of the errors that it gives.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from tests.loopback import LoopbackServer, Reply, Request

Block = dict[str, Any]
NEEDS_TOOLS = "Requests which include `tool_use` or `tool_result` blocks must define tools"


def text(said: str) -> Block:
    return {"type": "text", "text": said}


def thinking(thought: str) -> Block:
    return {"type": "thinking", "thinking": thought, "signature": f"signed {thought}"}


def use(id_: str, name: str, **arguments: Any) -> Block:
    return {"type": "tool_use", "id": id_, "name": name, "input": arguments}


class FakeAnthropic(LoopbackServer):
    """Each step is the content of one reply."""

    def __init__(self, *steps: Sequence[Block]) -> None:
        super().__init__()
        self.steps = steps
        self.bodies: list[dict[str, Any]] = []
        """Of all requests."""
        self.refused: list[str] = []
        self._played = 0

    def answer(self, request: Request) -> Reply:
        body = json.loads(request.body)
        self.bodies.append(body)
        if wrong := next(_broken_rules(body), None):
            self.refused.append(wrong)
            return Reply(400, {"type": "error", "error": {"type": "invalid_request_error", "message": wrong}})
        content = [dict(block) for block in self.steps[self._played]]
        self._played += 1
        is_call = any(block["type"] == "tool_use" for block in content)
        message = {
            "id": f"msg_{self._played}",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": content,
            "stop_reason": "tool_use" if is_call else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 5, "output_tokens": 5},
        }
        if not body.get("stream"):
            return Reply(body=message)
        events = b"".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode() for e in _events(message))
        return Reply(body=events, headers={"content-type": "text/event-stream"})


def _events(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
    for index, block in enumerate(message["content"]):
        empty, deltas = _pieces(block)
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    ended = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": ended, "usage": {"output_tokens": 5}}
    yield {"type": "message_stop"}


def _pieces(block: Block) -> tuple[Block, list[Block]]:
    if block["type"] == "text":
        return {**block, "text": ""}, [{"type": "text_delta", "text": part} for part in _halves(block["text"])]
    if block["type"] == "thinking":
        deltas: list[Block] = [{"type": "thinking_delta", "thinking": part} for part in _halves(block["thinking"])]
        signed = {"type": "signature_delta", "signature": block["signature"]}
        return {**block, "thinking": "", "signature": ""}, [*deltas, signed]
    written = _halves(json.dumps(block["input"]))
    return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": part} for part in written]


def _halves(whole: str) -> tuple[str, str]:
    middle = len(whole) // 2
    return whole[:middle], whole[middle:]


def _broken_rules(body: dict[str, Any]) -> Iterator[str]:
    """What the API says to each rule that the request breaks."""
    messages = body["messages"]
    blocks = [_blocks(message) for message in messages]
    if not body.get("tools") and any(_ids(content, "tool_use") or _ids(content, "tool_result") for content in blocks):
        yield NEEDS_TOOLS
    for at, content in enumerate(blocks):
        if not content:
            yield f"messages.{at}: all messages must have non-empty content"
        if any(block["type"] == "text" and not block["text"].strip() for block in content):
            yield f"messages.{at}: text content blocks must contain non-whitespace text"
        asked = _ids(content, "tool_use")
        if len(set(asked)) < len(asked):
            yield f"messages.{at}: `tool_use` ids must be unique"
        if any(not isinstance(block["input"], dict) for block in content if block["type"] == "tool_use"):
            yield f"messages.{at}: input: Input should be a valid dictionary"
        told = _ids(blocks[at + 1], "tool_result") if at + 1 < len(blocks) else []
        if missing := set(asked) - set(told):
            yield f"messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately after: {missing}"
        before = _ids(blocks[at - 1], "tool_use") if at else []
        if strays := set(_ids(content, "tool_result")) - set(before):
            yield f"messages.{at}: unexpected `tool_use_id` found in `tool_result` blocks: {strays}"


def _blocks(message: dict[str, Any]) -> list[Block]:
    content = message["content"]
    return [text(content)] if isinstance(content, str) else content


def _ids(content: Sequence[Block], kind: str) -> list[str]:
    key = "id" if kind == "tool_use" else "tool_use_id"
    return [block[key] for block in content if block["type"] == kind]
