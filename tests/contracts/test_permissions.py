"""Nothing outside a scope comes out, by whatever path: one property over random corpora, principals and requests."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from langchain_core.messages import BaseMessage

from graphrag_agent.agent import RagAgent
from graphrag_agent.context import AgentContext
from graphrag_agent.documents import short_id
from graphrag_agent.errors import KnowledgeBaseError
from graphrag_agent.graph.loop import SEARCH_TOOL, Request
from graphrag_agent.identity import Principal, acting_as
from graphrag_agent.retrieval.embedders import LangChainEmbedder
from graphrag_agent.retrieval.knowledge_base import KnowledgeBase
from graphrag_agent.retrieval.stores.port import ChunkStore
from graphrag_agent.retrieval.tokenizer import count_terms
from graphrag_agent.testing import ScriptedChatModel, call
from tests.hashing_embeddings import HashingEmbeddings
from tests.permission_world import (
    ASKING,
    CORPORA,
    PROFILE,
    QUERY,
    UNKNOWN,
    Asking,
    Owned,
    copied_for,
    everything,
    put,
    take_out,
)
from tests.store_backends import BACKENDS, opened_store


class RecordingReranker:
    """Keeps what it is shown, and turns the order around."""

    name = "recording"

    def __init__(self) -> None:
        self.seen: list[str] = []

    async def rerank(self, query: str, texts: Sequence[str]) -> list[float]:
        self.seen += texts
        return [float(place) for place in range(len(texts))]


class World(NamedTuple):
    """A corpus in a store, and one who asks."""

    store: ChunkStore
    knowledge: KnowledgeBase
    reranker: RecordingReranker
    corpus: list[Owned]
    asking: Asking

    @property
    def visible(self) -> list[Owned]:
        return [owned for owned in self.corpus if self.asking.may_see(owned)]

    @property
    def hidden(self) -> list[Owned]:
        return [owned for owned in self.corpus if not self.asking.may_see(owned)]

    @property
    def chunk_ids(self) -> set[str]:
        return {chunk.id for owned in self.visible for chunk in owned.chunks}

    def assert_silent(self, *came_out: object) -> None:
        """No secret of a hidden document, and so no id, source, title or text of one, in any of it."""
        text = everything(*came_out)
        assert [owned.secret for owned in self.hidden if owned.secret in text] == []


@pytest.fixture(scope="module", params=BACKENDS)
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChunkStore]:
    with opened_store(request.param, tmp_path_factory.mktemp("kb")) as opened:
        asyncio.run(opened.write_profile(PROFILE))
        yield opened


Check = Callable[[World], Coroutine[Any, Any, None]]


def checked(store: ChunkStore, corpus: list[Owned], asking: Asking, check: Check) -> None:
    """The check over the corpus, which is taken out again."""

    async def run() -> None:
        reranker, embedder = RecordingReranker(), LangChainEmbedder(HashingEmbeddings(), identity=PROFILE.embedder)
        knowledge = KnowledgeBase(store, embedder, Path("/"), reranker)
        try:
            await put(store, corpus)
            with acting_as(asking.principal):
                await check(World(store, knowledge, reranker, corpus, asking))
        finally:
            await take_out(store, corpus)

    asyncio.run(run())


@settings(max_examples=50)
@given(corpus=CORPORA, asking=ASKING)
def test_nothing_outside_the_scope_comes_out(store: ChunkStore, corpus: list[Owned], asking: Asking) -> None:
    async def check(world: World) -> None:
        await check_store(world)
        await check_documents(world)
        await check_searches(world)
        await check_faces(world)
        await check_turns(world)

    checked(store, corpus, asking, check)


async def check_store(world: World) -> None:
    """The filter inside the store and the predicate agree with the rule, leg by leg."""
    scope, embedder = world.asking.scope, HashingEmbeddings()
    assert [owned for owned in world.corpus if scope.allows(owned.document)] == world.visible
    assert {c.id for owned in world.corpus for c in owned.chunks if scope.allows(c)} == world.chunk_ids
    dense = await world.store.search_dense(embedder.embed_query(QUERY), scope, 100)
    words = await world.store.search_bm25(count_terms(QUERY), scope, 100)
    assert {hit.chunk.id for hit in dense} == {hit.chunk.id for hit in words} == world.chunk_ids
    for owned in world.corpus:
        expected = owned.chunks if owned in world.visible else ()
        assert tuple(await world.store.chunks(owned.document.id, scope)) == expected


async def check_documents(world: World) -> None:
    """Listing, counts, text, and the words in which something is refused."""
    knowledge, scope = world.knowledge, world.asking.scope
    listed = await knowledge.adocuments(scope)
    stats = await knowledge.astats(scope)
    assert {item.id for item in listed} == {owned.document.id for owned in world.visible}
    assert (stats.documents, stats.chunks) == (len(world.visible), len(world.chunk_ids))
    world.assert_silent(listed, stats)
    for owned in world.visible:
        assert await knowledge.aread(owned.document.id, scope=scope) == owned.document.text
    with pytest.raises(KnowledgeBaseError) as unknown:
        await knowledge.aread("nobodys", scope=scope)
    for owned in world.hidden:
        with pytest.raises(KnowledgeBaseError) as forbidden:
            await knowledge.aread(owned.document.id, scope=scope)
        assert str(forbidden.value).replace(owned.document.id, "nobodys") == str(unknown.value)
        assert await knowledge.adelete(owned.document.id, scope) is False
        assert await world.store.content_hash(owned.document.id) == owned.document.content_hash
        assert len(await world.store.chunk_ids(owned.document.id)) == len(owned.chunks)


async def check_searches(world: World) -> None:
    """Hits, notes, the trace, what a reranker is sent; near-duplicates stand back for visible ones only."""
    for legs in (["bm25"], ["dense"], None):
        result = await world.knowledge.asearch(QUERY, scope=world.asking.scope, top_k=100, legs=legs)
        world.assert_silent(asdict(result), world.reranker.seen)
        hits = {hit.chunk.id for hit in result.hits}
        dropped = {item["chunk"]: item["duplicate_of"] for item in result.trace["dropped"]}
        assert hits | dropped.keys() == world.chunk_ids
        assert not hits & dropped.keys()
        assert hits.issuperset(dropped.values())
    assert world.asking.scope.is_empty or bool(world.reranker.seen) == bool(world.visible)
    unknown = await _told(world, UNKNOWN)
    for owned in world.hidden:
        assert await _told(world, owned.secret) == unknown
    nothing = await world.knowledge.asearch("nosuchword", scope=world.asking.scope, legs=["bm25"])
    assert ("nothing to search" in nothing.note) == (not world.visible)


async def _told(world: World, word: str) -> str:
    """All that a search by words says about a word, but for the word itself and the time it took."""
    result = await world.knowledge.asearch(f"{QUERY} {word}", scope=world.asking.scope, top_k=100, legs=["bm25"])
    return re.sub(r'"milliseconds": [\d.]+', "", everything(asdict(result)).replace(word, UNKNOWN))


async def check_faces(world: World) -> None:
    """LangChain's faces, with a scope given and with that of who acts."""
    knowledge, asking = world.knowledge, world.asking
    own = Asking(asking.principal, type(asking.context)())
    for scope, who in ((asking.scope, asking), (None, own)):
        seen = world._replace(asking=who)
        found = await knowledge.as_retriever(k=20, scope=scope).ainvoke(QUERY)
        tool = knowledge.as_tool(k=20, scope=scope)
        message = await tool.ainvoke({"name": tool.name, "args": {"query": QUERY}, "id": "1", "type": "tool_call"})
        seen.assert_silent(found, message)
        assert bool(found) == bool(message.artifact) == bool(seen.visible)


async def check_turns(world: World) -> None:
    """Whole turns of one agent: the same words under another scope, a model that asks for what is hidden."""
    model = ScriptedChatModel(*[_a_greedy_model(world)] * 6)
    agent = RagAgent(model=model, knowledge=world.knowledge)
    own = world._replace(asking=Asking(world.asking.principal, type(world.asking.context)()))
    for thread, seen in (("narrow", world), ("own", own), ("narrow", world)):
        began = len(model.requests)
        context = seen.asking.context
        answer = await agent.aask(QUERY, thread=thread, context=context, principal=seen.asking.principal)
        assert [call_.is_error for call_ in answer.trace] == [False] * len(answer.trace)
        [plain] = [call_ for call_ in answer.trace if "document_ids" not in call_.arguments]
        visible = min(5, len(await _hits(seen)))  # neighbouring passages are shown as one
        assert min(1, visible) <= plain.found <= visible  # it ran, whatever an earlier turn had found
        history = await agent.ahistory(thread)
        sent = [request.messages for request in model.requests[began:]]
        seen.assert_silent(_said(sent), asdict(answer) | {"trace": ()}, history)
        assert {citation.document_id for citation in answer.citations} <= {o.document.id for o in seen.visible}
        assert bool(answer.citations) == bool(seen.visible)


async def _hits(world: World) -> Sequence[object]:
    return (await world.knowledge.asearch(QUERY, scope=world.asking.scope, top_k=20)).hits


def _a_greedy_model(world: World) -> Callable[[list[BaseMessage], tuple[str, ...]], Any]:
    """Searches, also for hidden documents by their ids, then repeats all it saw and cites all it could."""
    hidden_ids = [owned.document.id for owned in world.hidden]
    short_ids = [short_id(chunk.id) for owned in world.corpus for chunk in owned.chunks]

    def step(messages: list[BaseMessage], tools: tuple[str, ...]) -> Any:
        results = [message.text for message in messages if message.type == "tool"]
        if results:
            return "\n".join([*results, *(f"[{name}]" for name in short_ids)])
        plain = call(SEARCH_TOOL, query=QUERY)
        return [plain, *([call(SEARCH_TOOL, query=QUERY, document_ids=hidden_ids)] if hidden_ids else [])]

    return step


def _said(requests: Sequence[Sequence[BaseMessage]]) -> list[str]:
    """What the prompts say, but for the model's own calls, which it had made up."""
    return [f"{m.content} {getattr(m, 'artifact', '')}" for messages in requests for m in messages]


@settings(max_examples=25)
@given(corpus=CORPORA, asking=ASKING)
def test_another_tenants_documents_change_no_score(store: ChunkStore, corpus: list[Owned], asking: Asking) -> None:
    async def check(world: World) -> None:
        async def results() -> list[Any]:
            search = world.knowledge.asearch
            return [(await search(QUERY, scope=asking.scope, top_k=100, legs=legs)).hits for legs in (["bm25"], None)]

        alone, rivals = await results(), copied_for("rival", corpus)
        try:
            await put(store, rivals)
            assert await results() == alone
        finally:
            await take_out(store, rivals)

    checked(store, corpus, asking, check)


@settings(max_examples=15)
@given(corpus=CORPORA, first=ASKING, second=ASKING)
def test_turns_side_by_side_see_their_own(
    store: ChunkStore, corpus: list[Owned], first: Asking, second: Asking
) -> None:
    """One agent, two who ask the same at the same time, streamed, so that calls start early."""

    async def check(world: World) -> None:
        model = ScriptedChatModel(*[_a_greedy_model(world)] * 4)
        agent = RagAgent(model=model, knowledge=world.knowledge)

        async def ask(name: str, asking: Asking) -> None:
            options: dict[str, Any] = {"context": asking.context, "principal": asking.principal}
            events = [event async for event in agent.astream(f"{QUERY} for {name}", **options)]
            seen = world._replace(asking=asking)
            seen.assert_silent([asdict(event) for event in events if event.type != "tool_start"])
            mine = [r.messages for r in model.requests if any(message.text.endswith(name) for message in r.messages)]
            assert len(mine) == 2
            seen.assert_silent(_said(mine))

        await asyncio.gather(ask("Ann", first), ask("Bob", second))

    checked(store, corpus, first, check)


NAMES = st.text(alphabet="ab,|=*\"' 汉", min_size=1, max_size=4)
NARROWINGS = st.none() | st.lists(NAMES, max_size=3).map(tuple)
REQUESTS = st.builds(
    lambda groups, collections, ids: Request(
        None,  # type: ignore[arg-type]  # a scope needs no parts of a graph
        AgentContext(collections=collections, document_ids=ids),
        Principal(groups=groups),
    ),
    st.lists(NAMES, max_size=3).map(tuple),
    NARROWINGS,
    NARROWINGS,
)


@given(first=REQUESTS, second=REQUESTS)
@example(*(Request(None, AgentContext(), Principal(groups=groups)) for groups in (("a,b",), ("a", "b"))))  # type: ignore[arg-type]
def test_a_fingerprint_knows_one_scope_from_another(first: Request, second: Request) -> None:
    """Else a search could be answered with what was found for somebody who may see more."""
    assert (first.scope_key == second.scope_key) == (first.scope.conditions() == second.scope.conditions())
