"""A serializer that decodes a thread's messages once.

Every turn reads the thread back to its last full copy, which stays the same for some turns and is as long as the
thread, and then what was written after it: at turn 200 decoding both costs a third of the turn's CPU.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Any

import ormsgpack
from langchain_core.messages import BaseMessage
from langgraph.checkpoint.serde import jsonplus
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot

MAX_BYTES = 8_000_000
"""Encoded size of what is kept; decoded it takes several times as much. The least recently used goes first."""

MIN_BYTES = 64
"""Smaller ones are no messages."""


class KeptMessages(JsonPlusSerializer):
    """LangGraph's own serializer and format; only decoded messages, also those of full copies, are kept for later.

    They are named by a hash of their bytes, so nobody is given what was not in his own file. The list is new for each
    reader; the messages in it are shared, and nothing in this package changes a message.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._kept: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._bytes = 0
        self._guard = threading.Lock()

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """As the base; the beta format of Delta channels is read as this version of LangGraph writes it."""
        kind, encoded = data
        if kind != "msgpack":
            return super().loads_typed(data)
        return ormsgpack.unpackb(encoded, ext_hook=self._decoded, option=ormsgpack.OPT_NON_STR_KEYS)

    def _decoded(self, code: int, data: bytes) -> Any:
        if len(data) < MIN_BYTES:
            return self._unpack_ext_hook(code, data)
        name = hashlib.blake2b(data, digest_size=16, salt=code.to_bytes(2, "big")).digest()
        kept = self.recall(name)
        if kept is not None:
            return _DeltaSnapshot(list(kept)) if code == jsonplus.EXT_DELTA_SNAPSHOT else kept
        value = self._unpack_ext_hook(code, data)
        if code == jsonplus.EXT_DELTA_SNAPSHOT:
            if isinstance(value.value, list):
                self.keep(name, list(value.value), len(data))
        elif isinstance(value, BaseMessage):
            self.keep(name, value, len(data))
        return value

    def recall(self, name: Hashable) -> Any:
        """What is kept under the name; None where nothing is."""
        with self._guard:
            if (kept := self._kept.get(name)) is None:
                return None
            self._kept.move_to_end(name)
            return kept[0]

    def keep(self, name: Hashable, value: Any, size: int) -> None:
        """Keep the value, which has so many bytes when it is encoded, as long as there is room for it."""
        with self._guard:
            if name in self._kept or size > MAX_BYTES:
                return
            self._kept[name] = (value, size)
            self._bytes += size
            while self._bytes > MAX_BYTES:
                self._bytes -= self._kept.popitem(last=False)[1][1]


def build_serializer() -> JsonPlusSerializer:
    """The serializer for our own checkpointers; LangGraph's where it no longer has what ours relies on."""
    known = hasattr(jsonplus, "EXT_DELTA_SNAPSHOT") and hasattr(JsonPlusSerializer(), "_unpack_ext_hook")
    return KeptMessages() if known else JsonPlusSerializer()
