"""What the model writes, straight from its call.

LangGraph's mode "messages" brings the same, but there each token passes through the graph's own queue and wakes its
loop, which costs as much CPU as the rest of the token's way.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from typing import Any, TypeVar
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessageChunk
from langchain_core.utils.utils import LC_AUTO_PREFIX

from graphrag_agent.events import EVIDENCE_IDS, TextDelta, ThinkingDelta
from graphrag_agent.models.text_tools.rescue import MarkupFilter
from graphrag_agent.models.thoughts import Parted, ThoughtSplitter
from graphrag_agent.streaming.citation_filter import CitationFilter

T = TypeVar("T")

MODEL_NODES = ("model", "summarize_on_max_iterations")
SILENT_TAG = "nostream"
"""LangGraph's own tag for models whose tokens nobody should see."""


class TextWatch(BaseCallbackHandler):
    """Emits text and thoughts of the graph's own model calls; those inside tools and nested graphs stay silent."""

    run_inline = True
    ignore_chain = True
    ignore_agent = True
    ignore_retriever = True

    def __init__(self, emit: Callable[[TextDelta | ThinkingDelta], None], *, tool_names: Collection[str]) -> None:
        self._emit = emit
        self._tool_names = tool_names
        self._filters: dict[UUID, _ReadersText] = {}
        """Of the calls that are watched."""
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()

    def on_chat_model_start(
        self, serialized: Any, messages: Any, *, run_id: UUID, metadata: Any = None, tags: Any = None, **kwargs: Any
    ) -> None:
        """Watches the call if it is the graph's own."""
        place = metadata or {}
        is_nested = "|" in str(place.get("langgraph_checkpoint_ns", ""))
        if place.get("langgraph_node") in MODEL_NODES and not is_nested and SILENT_TAG not in (tags or ()):
            ids = place.get(EVIDENCE_IDS)
            self._filters[run_id] = _ReadersText(self._tool_names, None if ids is None else str(ids).split())

    def on_llm_new_token(self, token: Any, *, chunk: Any = None, run_id: UUID, **kwargs: Any) -> None:
        """Emits what the chunk holds."""
        message = getattr(chunk, "message", None)
        shown = self._filters.get(run_id)
        if shown is None or not isinstance(message, AIMessageChunk):
            return
        id_ = shown.message_id(message.id or "")
        if thought := _thought(message):
            shown.has_thoughts_aside = True
            self._send(ThinkingDelta(thought, id_))
        if text := message.content if isinstance(message.content, str) else str(message.text):
            self._send_parted(shown.feed(text), id_)
        if message.chunk_position == "last":
            self._send_parted(shown.close(), id_)
            del self._filters[run_id]

    def _send_parted(self, parted: Parted, id_: str) -> None:
        if parted.thought:
            self._send(ThinkingDelta(parted.thought, id_))
        if parted.said:
            self._send(TextDelta(parted.said, id_))

    def _send(self, event: TextDelta | ThinkingDelta) -> None:
        if threading.get_ident() == self._thread:
            self._emit(event)
        else:  # a model without an async form streams in a thread of its own
            self._loop.call_soon_threadsafe(self._emit, event)

    def tap_output_aiter(self, run_id: UUID, output: AsyncIterator[T]) -> AsyncIterator[T]:
        """Nothing; that it is there makes LangChain stream the model, as for LangGraph's own modes."""
        return output

    def tap_output_iter(self, run_id: UUID, output: Iterator[T]) -> Iterator[T]:
        """Nothing, as `tap_output_aiter`."""
        return output


class _ReadersText:
    """A message's text for its reader: without tool calls, thoughts (some models write both as text) and unknown ids.

    Where nobody says which ids there are, all of them stay.
    """

    def __init__(self, tool_names: Collection[str], evidence_ids: Collection[str] | None) -> None:
        self.has_thoughts_aside = False
        """Whether the model gives its thoughts apart, so that tags in its text are text."""
        self._thoughts = ThoughtSplitter()
        self._markup = MarkupFilter(tool_names)
        self._citations = None if evidence_ids is None else CitationFilter(frozenset(evidence_ids))
        self._given_id = ""

    def message_id(self, chunk_id: str) -> str:
        """The id that the whole message will have: the first that the provider gave, which may give it only once.

        LangChain gives the other chunks ids of its own.
        """
        if not self._given_id and not chunk_id.startswith(LC_AUTO_PREFIX):
            self._given_id = chunk_id
        return self._given_id or chunk_id

    def feed(self, piece: str) -> Parted:
        """What may be shown now."""
        parted = Parted(piece, "") if self.has_thoughts_aside else self._thoughts.feed(piece)
        text = self._markup.feed(parted.said)
        return Parted(text if self._citations is None else self._citations.feed(text), parted.thought)

    def close(self) -> Parted:
        """What was kept back, with nothing to follow it."""
        parted = self._thoughts.close()
        text = self._markup.feed(parted.said) + self._markup.close()
        if self._citations is not None:
            text = self._citations.feed(text) + self._citations.close()
        return Parted(text, parted.thought)


def _thought(message: AIMessageChunk) -> str:
    """What reasoning models stream beside their answer: a field of its own, or blocks of the content."""
    aside = str(message.additional_kwargs.get("reasoning_content") or "")
    blocks = message.content if isinstance(message.content, list) else []
    parts = [
        str(block.get(block["type"]) or block.get("text") or "")
        for block in blocks
        if isinstance(block, dict) and block.get("type") in ("thinking", "reasoning")
    ]
    return "".join([aside, *parts])
