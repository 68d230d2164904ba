"""`ChatOpenAI` with cheap requests, cheap streams and replies that are read strictly."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing, closing
from functools import cache
from typing import TYPE_CHECKING, Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from pydantic import Field, PrivateAttr

from graphrag_agent.models.openai_compatible.conversion import Conversion
from graphrag_agent.models.openai_compatible.exchange import (
    DRAIN_SECONDS,
    Arrivals,
    feed_body,
    is_event_stream,
    json_body,
    sdk_errors,
)
from graphrag_agent.models.openai_compatible.lean_requests import LeanRequests, posted
from graphrag_agent.models.openai_compatible.library import library_errors, missing_hooks
from graphrag_agent.models.openai_compatible.reply import Delta, Reply

if TYPE_CHECKING:
    from langchain_openai import ChatOpenAI

    _Model = ChatOpenAI
else:
    _Model = object

logger = logging.getLogger(__name__)

MERGE_SECONDS = 0.015
"""A screen shows no more than some sixty pictures a second. Waking for each token of a faster model costs as much CPU
as all else that is done with it (benchmarks.agent_loop, streamed: 0.7x create_agent without, below 0.6x with)."""


class LeanCalls(LeanRequests, Conversion, _Model):
    """The four ways to call a ChatOpenAI, mixed in before it.

    Requests and replies are the same as ChatOpenAI's. Deltas that arrive together come as one chunk, and the final
    message is read from what was received: arguments that are no JSON object become invalid tool calls.
    """

    if TYPE_CHECKING:
        merge_seconds: float

    def _should_stream(
        self,
        *,
        async_api: bool,
        run_manager: CallbackManagerForLLMRun | AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> bool:
        """Whether langchain-core merges the chunks of a stream. With a run, `_generate` streams and does it itself."""
        wanted = super()._should_stream(async_api=async_api, run_manager=run_manager, **kwargs)
        return wanted and (run_manager is None or not self._is_lean(kwargs))

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        if not self._is_lean(kwargs):
            return super()._generate(messages, stop=stop, run_manager=run_manager, **kwargs)
        self._ensure_sync_client_available()
        if super()._should_stream(async_api=False, run_manager=run_manager, **kwargs):
            reply = self._new_reply()
            for chunk in self._receive(reply, self._stream_payload(messages, stop, kwargs)):
                if run_manager:
                    chunk.message.id = self._message_id(run_manager)
                    run_manager.on_llm_new_token(chunk.message.content, chunk=chunk)
            return self._to_result(reply, self._message_id(run_manager))
        payload = self._whole_payload(messages, stop, kwargs)
        with library_errors():
            response = self.root_client.post(**posted(payload)).http_response
            with sdk_errors(response):
                return self._read_completion(json_body(response))

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        if not self._is_lean(kwargs):
            return await super()._agenerate(messages, stop=stop, run_manager=run_manager, **kwargs)
        if super()._should_stream(async_api=True, run_manager=run_manager, **kwargs):
            reply = self._new_reply()
            async with aclosing(self._areceive(reply, self._stream_payload(messages, stop, kwargs))) as chunks:
                async for chunk in chunks:
                    if run_manager:
                        chunk.message.id = self._message_id(run_manager)
                        await run_manager.on_llm_new_token(chunk.message.content, chunk=chunk)
            return self._to_result(reply, self._message_id(run_manager))
        payload = self._whole_payload(messages, stop, kwargs)
        with library_errors():
            response = (await self.root_async_client.post(**posted(payload))).http_response
            with sdk_errors(response):
                return self._read_completion(json_body(response))

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        if not self._is_lean(kwargs):
            yield from super()._stream(messages, stop=stop, run_manager=run_manager, **kwargs)
            return
        self._ensure_sync_client_available()
        for chunk in self._receive(self._new_reply(), self._stream_payload(messages, stop, kwargs)):
            if run_manager:
                run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        if not self._is_lean(kwargs):
            async for chunk in super()._astream(messages, stop=stop, run_manager=run_manager, **kwargs):
                yield chunk
            return
        async with aclosing(self._areceive(self._new_reply(), self._stream_payload(messages, stop, kwargs))) as chunks:
            async for chunk in chunks:
                if run_manager:
                    await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
                yield chunk

    def _receive(self, reply: Reply, payload: dict[str, Any]) -> Iterator[ChatGenerationChunk]:
        """The chunks of one streamed reply. A read of a sync client can't be looked into: one chunk for each."""
        with library_errors():
            response = self.root_client.post(**posted(payload)).http_response
            with sdk_errors(response), closing(response):
                if not is_event_stream(response):
                    response.read()
                    yield self._to_last_chunk(reply, feed_body(reply, response))
                    return
                last: Delta | None = None
                for data in response.iter_bytes():
                    delta = reply.feed(data)
                    if reply.is_done:
                        last = delta
                        break
                    if delta is not None:
                        yield self._to_chunk(delta)
                yield self._to_last_chunk(reply, last)

    async def _areceive(self, reply: Reply, payload: dict[str, Any]) -> AsyncGenerator[ChatGenerationChunk, None]:
        """The chunks of one streamed reply, one for all that has arrived."""
        with library_errors():
            response = (await self.root_async_client.post(**posted(payload))).http_response
            with sdk_errors(response):
                if not is_event_stream(response):
                    await response.aread()
                    yield self._to_last_chunk(reply, feed_body(reply, response))
                    return
                async with Arrivals(response) as arrivals:
                    last, until = None, self._silent_until()
                    while not reply.is_done and (data := await self._next_bytes(arrivals, until)):
                        delta = reply.feed(data)
                        if reply.is_done:
                            last = delta
                        elif delta is not None:
                            yield self._to_chunk(delta)
                            until = self._silent_until()
                            if self.merge_seconds and delta.content:
                                await arrivals.linger(self.merge_seconds)
                    yield self._to_last_chunk(reply, last)
                    await arrivals.linger(DRAIN_SECONDS)

    def _silent_until(self) -> float | None:
        """When the stream has stood still for too long; heartbeats are no news."""
        return asyncio.get_running_loop().time() + self.stream_chunk_timeout if self.stream_chunk_timeout else None

    async def _next_bytes(self, arrivals: Arrivals, until: float | None) -> bytes:
        try:
            return await arrivals.take(until)
        except TimeoutError as error:
            from langchain_openai import StreamChunkTimeoutError

            seconds = self.stream_chunk_timeout or 0.0
            raise StreamChunkTimeoutError(seconds, model_name=self.model_name) from error


@cache
def chat_model_class() -> type[ChatOpenAI]:
    """The class to build: ChatOpenAI itself where the installed library has changed too much to be helped."""
    from langchain_openai import ChatOpenAI

    if missing := missing_hooks(ChatOpenAI):
        logger.debug("langchain-openai has no %s: requests and streams take its own, slower path", ", ".join(missing))
        return ChatOpenAI

    class LeanChatOpenAI(LeanCalls, ChatOpenAI):
        """ChatOpenAI, called the cheap way."""

        merge_seconds: float = Field(default=MERGE_SECONDS, ge=0.0, exclude=True)
        """After a piece of text, how long to wait for more to go with the next one; nothing else is held back."""
        _opens_thoughts: bool = PrivateAttr(default=False)
        """Whether this model's replies begin among its thoughts, as the last one that was streamed tells."""

        def get_name(self, suffix: str | None = None, *, name: str | None = None) -> str:
            return super().get_name(suffix, name=name or self.name or ChatOpenAI.__name__)

        @classmethod
        def lc_id(cls) -> list[str]:
            return ChatOpenAI.lc_id()

    return LeanChatOpenAI
