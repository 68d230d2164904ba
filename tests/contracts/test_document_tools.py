"""The tools that open documents, over every store: nothing outside the scope comes out; places can be read again."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from graphrag_agent.citations import Citation
from graphrag_agent.citations.values import digest_of
from graphrag_agent.errors import ToolArgumentError
from graphrag_agent.retrieval.embedders import LangChainEmbedder
from graphrag_agent.retrieval.knowledge_base import KnowledgeBase
from graphrag_agent.retrieval.scope import Scope
from graphrag_agent.retrieval.stores.port import ChunkStore
from graphrag_agent.tools.evidence_message import read_evidence
from graphrag_agent.tools.find_documents import build_find_documents
from graphrag_agent.tools.read_document import build_read_document
from graphrag_agent.tools.spec import ToolSpec
from graphrag_agent.tools.summarize_documents import build_summarize_documents
from tests.hashing_embeddings import HashingEmbeddings
from tests.permission_world import ASKING, CORPORA, PROFILE, QUERY, Asking, Owned, everything, put, take_out
from tests.shelf import run_tool
from tests.store_backends import BACKENDS, opened_store


@pytest.fixture(scope="module", params=BACKENDS)
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChunkStore]:
    with opened_store(request.param, tmp_path_factory.mktemp("kb")) as opened:
        asyncio.run(opened.write_profile(PROFILE))
        yield opened


@settings(max_examples=8)
@given(corpus=CORPORA, first=ASKING, second=ASKING)
def test_nothing_outside_the_scope_comes_out(
    store: ChunkStore, corpus: list[Owned], first: Asking, second: Asking
) -> None:
    """Both ask the same tools, so that what is kept for one must not serve the other."""

    async def run() -> None:
        embedder = LangChainEmbedder(HashingEmbeddings(), identity=PROFILE.embedder)
        knowledge = KnowledgeBase(store, embedder, Path("/"))
        find, read = build_find_documents(knowledge), build_read_document(knowledge)
        summarize = build_summarize_documents(knowledge)
        try:
            await put(store, corpus)
            for asking in (first, second, first):
                await _check_found(find, corpus, asking)
                await _check_opened(read, "document_id", corpus, asking)
                await _check_opened(summarize, "document_ids", corpus, asking)
        finally:
            await take_out(store, corpus)

    asyncio.run(run())


async def _check_found(find: ToolSpec, corpus: list[Owned], asking: Asking) -> None:
    visible = {owned.document.id for owned in corpus if asking.may_see(owned)}
    for query in (None, QUERY, "Title", "Handbook"):
        message = await run_tool(find, scope=asking.scope, query=query, limit=20)
        shown = set(re.findall(r"^document_id: (\S+)$", message.text, re.MULTILINE))
        if query in (None, "Title"):
            assert shown == visible
            assert not visible or f" of {len(visible)}" in message.text, "hidden ones are not counted"
        assert shown <= visible  # a search leaves out passages that say what others say
        assert bool(shown) == bool(visible)
        _assert_silent(corpus, asking, message)
    for owned in corpus:
        message = await run_tool(find, scope=asking.scope, query=owned.secret)
        assert (owned.document.id in message.text) == asking.may_see(owned)


async def _check_opened(spec: ToolSpec, argument: str, corpus: list[Owned], asking: Asking) -> None:
    def arguments(name: str) -> dict[str, Any]:
        return {argument: [name] if argument == "document_ids" else name}

    with pytest.raises(ToolArgumentError) as unknown:
        await run_tool(spec, scope=asking.scope, **arguments("nobodys"))
    for owned in corpus:
        for name in (owned.document.id, owned.document.title, owned.document.source):
            if asking.may_see(owned):
                message = await run_tool(spec, scope=asking.scope, **arguments(name))
                _assert_silent(corpus, asking, message)
                await _check_places(spec, owned, message, asking)
                continue
            with pytest.raises(ToolArgumentError) as forbidden:
                await run_tool(spec, scope=asking.scope, **arguments(name))
            assert str(forbidden.value).replace(name, "nobodys") == str(unknown.value)


async def _check_places(spec: ToolSpec, owned: Owned, message: Any, asking: Asking) -> None:
    """What is shown can be read again by its place, as a later turn does."""
    assert spec.read is not None
    found = list(read_evidence([message]).values())
    assert found
    for item in found:
        text = await spec.read(item.document_id, item.start, item.end, asking.scope)
        assert item.document_id == owned.document.id
        assert text == item.text
        assert digest_of(text) == Citation.of(item).digest


def _assert_silent(corpus: list[Owned], asking: Asking, message: Any) -> None:
    text = everything(message.text, message.artifact)
    assert [owned.secret for owned in corpus if not asking.may_see(owned) and owned.secret in text] == []


async def test_a_document_and_its_chunks_come_in_their_scope_alone(tmp_path: Path) -> None:
    for backend in ("memory", "embedded", "server"):
        with opened_store(backend, tmp_path / backend) as opened:
            knowledge = KnowledgeBase(opened, None, tmp_path)
            await knowledge.aingest("examples/leave-policy.md", tenant="acme", groups=["hr"])
            [listed] = await knowledge.adocuments(_scope("hr"))
            document = await knowledge.adocument(listed.id, _scope("hr"))
            chunks = await knowledge.achunks(listed.id, _scope("hr"))
            assert [chunk.position for chunk in chunks] == list(range(document.chunk_count))
            assert all(document.text[chunk.start : chunk.end] == chunk.text for chunk in chunks)
            assert await knowledge.achunks(listed.id, _scope("it")) == []


def _scope(group: str) -> Scope:
    return Scope("acme", frozenset({group}))
