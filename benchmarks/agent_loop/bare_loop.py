"""The loop without any framework: the floor under the others."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import openai

from benchmarks.agent_loop.script import CannedKnowledge, search_text
from graphrag_agent.graph.prompts.loading import render_prompt


@dataclass
class BareLoop:
    """What the loop costs without any framework: requests, gathered searches, a list a thread.

    Its HTTP client is the OpenAI client's own: httpx 0.28 is slow beyond all measure at a hundred new connections.
    """

    url: str
    model: str
    tools: list[dict[str, Any]]
    client: openai.DefaultAsyncHttpxClient
    knowledge: CannedKnowledge
    name: str = "httpx"
    may_copy: bool = True
    threads: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    async def ask(self, question: str, thread: str, **config: Any) -> str:
        """The answer, by whole messages."""
        messages = self._opened(question, thread)
        while True:
            response = await self.client.post(self.url, json=self._body(messages))
            message = response.json()["choices"][0]["message"]
            messages.append(message)
            if not message.get("tool_calls"):
                return str(message["content"])
            await self._run_calls(messages)

    async def stream(self, question: str, thread: str) -> AsyncIterator[str]:
        """The answer as its lines come in."""
        messages = self._opened(question, thread)
        while True:
            message: dict[str, Any] = {"role": "assistant", "content": ""}
            body = {**self._body(messages), "stream": True}
            async with self.client.stream("POST", self.url, json=body) as response:
                async for line in response.aiter_lines():
                    if text := _add_line(message, line):
                        yield text
            messages.append(message)
            if "tool_calls" not in message:
                return
            await self._run_calls(messages)

    async def grow(self, thread: str, turns: int) -> None:
        """By copies of one real turn."""
        await self.ask("What holds?", f"{thread}-model")
        system, *turn = self.threads[f"{thread}-model"]
        self.threads[thread] = [system, *(turn * turns)]

    def _opened(self, question: str, thread: str) -> list[dict[str, Any]]:
        messages = self.threads.setdefault(thread, [{"role": "system", "content": render_prompt("system")}])
        messages.append({"role": "user", "content": question})
        return messages

    def _body(self, messages: list[dict[str, Any]]) -> dict[str, Any]:
        return {"model": self.model, "messages": messages, "tools": self.tools}

    async def _run_calls(self, messages: list[dict[str, Any]]) -> None:
        calls = messages[-1]["tool_calls"]
        arguments = [json.loads(call["function"]["arguments"]) for call in calls]
        texts = await asyncio.gather(*(search_text(self.knowledge, **given) for given in arguments))
        messages += [
            {"role": "tool", "tool_call_id": call["id"], "content": text}
            for call, text in zip(calls, texts, strict=True)
        ]


def _add_line(message: dict[str, Any], line: str) -> str:
    """The text of a line of the stream; what it says is added to the message."""
    if not line.startswith("data: {"):
        return ""
    choices = json.loads(line[6:])["choices"]
    delta = choices[0]["delta"] if choices else {}
    for part in delta.get("tool_calls") or ():
        calls = message.setdefault("tool_calls", [])
        if part["index"] == len(calls):
            calls.append({"id": part["id"], "type": "function", "function": dict(part["function"])})
        else:
            calls[part["index"]]["function"]["arguments"] += part["function"]["arguments"]
    text = str(delta.get("content") or "")
    message["content"] += text
    return text
