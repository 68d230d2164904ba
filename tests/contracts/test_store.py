"""What every `ChunkStore` must do, and that the backends agree."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
import qdrant_edge
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_agent.documents import Chunk, Document
from graphrag_agent.errors import EmbedderMismatchError, KnowledgeBaseError, StoreLockedError
from graphrag_agent.retrieval.scope import EVERYONE, Scope
from graphrag_agent.retrieval.stores.edge import EdgeStore
from graphrag_agent.retrieval.stores.memory import MemoryStore
from graphrag_agent.retrieval.stores.opening import open_store
from graphrag_agent.retrieval.stores.payload import text_hash
from graphrag_agent.retrieval.stores.port import ChunkRecord, ChunkStore, LegHit, StoreCounts, StoreProfile
from graphrag_agent.retrieval.tokenizer import count_terms
from tests.store_backends import BACKENDS, opened_store

PROFILE = StoreProfile("test", 3)
ALL = Scope("acme", frozenset({"hr", "legal"}))


def chunk(name: str, text: str = "plain text", **fields: object) -> Chunk:
    defaults = {"document_id": "doc", "tenant": "acme", "collection": "default", "groups": (), "source": "a.md"}
    shape = {"source_type": "md", "title": "A", "heading": "", "page": None, "position": 0, "start": 0}
    return Chunk(id=name, text=text, end=len(text), **{**defaults, **shape, **fields})  # type: ignore[arg-type]


def record(item: Chunk, vector: list[float] | None = None) -> ChunkRecord:
    return ChunkRecord(item, count_terms(item.text), vector)


def document(name: str = "doc", **fields: object) -> Document:
    base = Document(name, "acme", "default", "a.md", "A", "md", "the text", "hash-1", metadata={"year": 2024})
    return replace(base, **fields)  # type: ignore[arg-type]


@pytest.fixture(params=BACKENDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ChunkStore]:
    with opened_store(request.param, tmp_path) as opened:
        yield opened


async def bm25(store: ChunkStore, query: str, scope: Scope = ALL, limit: int = 10) -> list[str]:
    return [hit.chunk.id for hit in await store.search_bm25(count_terms(query), scope, limit)]


async def test_a_written_chunk_is_found_by_its_words_and_by_its_vector(store: ChunkStore) -> None:
    await store.write_profile(PROFILE)
    wanted = chunk("c1", "The pump E-1042 est bloquée 泵", heading="A > B", page=3, position=7, groups=("hr",))
    await store.write_chunks([record(wanted, [1.0, 0.0, 0.0]), record(chunk("c2", "other"), [0.0, 1.0, 0.0])])
    [by_words] = await store.search_bm25(count_terms("e-1042"), ALL, 5)
    assert by_words.chunk == wanted
    by_vector = await store.search_dense([1.0, 0.1, 0.0], ALL, 5)
    assert [hit.chunk.id for hit in by_vector] == ["c1", "c2"]
    assert by_vector[0].score == pytest.approx(0.995, abs=1e-3)


async def test_an_empty_store_answers_every_read_with_nothing(store: ChunkStore) -> None:
    assert await store.profile() is None
    assert await store.search_bm25({"word": 1}, ALL, 5) == []
    assert await store.search_dense([1.0, 0.0, 0.0], ALL, 5) == []
    assert await store.chunks("doc", ALL) == []
    assert await store.documents(ALL) == []
    assert await store.document("doc", ALL) is None
    assert await store.vectors(["c1"]) == {}
    assert await store.counts(ALL) == StoreCounts(0, 0, 0)


async def test_unknown_ids_are_ignored_or_empty(store: ChunkStore) -> None:
    await store.write_chunks([record(chunk("c1"))])
    await store.remove_chunks(["nope", "c1", "c1"])
    await store.remove_document("nope")
    assert await store.counts(ALL) == StoreCounts(0, 0, 0)
    assert await store.content_hash("nope") is None
    assert await store.chunk_ids("nope") == []


async def test_writing_a_chunk_again_replaces_words_vector_and_access(store: ChunkStore) -> None:
    await store.write_profile(PROFILE)
    await store.write_chunks([record(chunk("c1", "old words"), [1.0, 0.0, 0.0])])
    await store.write_chunks([record(chunk("c1", "new words", groups=("hr",)))])
    assert await bm25(store, "old") == []
    assert await bm25(store, "new") == ["c1"]
    assert await bm25(store, "new", Scope("acme")) == []
    assert await store.vectors(["c1"]) == {}
    assert await store.search_dense([1.0, 0.0, 0.0], ALL, 5) == []


async def test_a_chunk_written_again_without_a_vector_keeps_that_of_the_same_text(store: ChunkStore) -> None:
    await store.write_profile(PROFILE)
    await store.write_chunks([record(chunk("c1", "same words"), [1.0, 0.0, 0.0])])
    await store.write_chunks([record(chunk("c1", "same words", groups=("hr",))), record(chunk("c2", "others"))])
    assert await store.vectors(["c1", "c2"]) == {"c1": pytest.approx([1.0, 0.0, 0.0])}
    assert [hit.chunk.groups for hit in await store.search_dense([1.0, 0.0, 0.0], ALL, 5)] == [("hr",)]
    await store.write_chunks([record(chunk("c1", "same words"), [0.0, 1.0, 0.0])])
    assert await store.vectors(["c1"]) == {"c1": pytest.approx([0.0, 1.0, 0.0])}


async def test_vectors_are_added_to_stored_chunks_only(store: ChunkStore) -> None:
    await store.write_chunks([record(chunk("c1", "word", groups=("hr",))), record(chunk("c2", "word"))])
    assert (await store.counts(ALL)).pending == 2
    await store.write_profile(PROFILE)
    await store.write_vectors({"c1": [0.0, 1.0, 0.0], "nope": [1.0, 0.0, 0.0]}, PROFILE.embedder)
    await store.write_vectors({}, PROFILE.embedder)
    assert await store.counts(ALL) == StoreCounts(0, 2, 1)
    assert await store.counts(Scope("acme")) == StoreCounts(0, 1, 1)
    [hit] = await store.search_dense([0.0, 1.0, 0.0], ALL, 5)
    assert hit == LegHit(chunk("c1", "word", groups=("hr",)), pytest.approx(1.0))
    assert await bm25(store, "word") == ["c1", "c2"]


async def test_vectors_of_another_embedder_are_refused(store: ChunkStore) -> None:
    await store.write_chunks([record(chunk("c1"))])
    with pytest.raises(EmbedderMismatchError, match="dropped meanwhile"):
        await store.write_vectors({"c1": [1.0, 0.0, 0.0]}, "test")
    await store.write_profile(PROFILE)
    await store.write_profile(PROFILE)
    with pytest.raises(EmbedderMismatchError, match="made with 'test'; none of 'other' can be added"):
        await store.write_vectors({"c1": [1.0, 0.0, 0.0]}, "other")
    with pytest.raises(EmbedderMismatchError):
        await store.write_profile(StoreProfile("other", 3))
    assert (await store.profile(), await store.vectors(["c1"])) == (PROFILE, {})


async def test_pending_chunks_are_those_of_all_tenants_without_a_vector(store: ChunkStore) -> None:
    await store.write_chunks([record(chunk(f"c{n}", f"w{n}", tenant=f"t{n % 2}")) for n in range(6)])
    assert {item.id for item in await store.pending_chunks(10)} == {f"c{n}" for n in range(6)}
    first = await store.pending_chunks(4)
    assert first == (await store.pending_chunks(10))[:4]
    await store.write_profile(PROFILE)
    await store.write_vectors({item.id: [1.0, 0.0, 0.0] for item in first[:3]}, PROFILE.embedder)
    await store.remove_chunks([first[3].id])
    gone = {item.id for item in first}
    assert {item.id for item in await store.pending_chunks(10)} == {f"c{n}" for n in range(6)} - gone


async def test_a_known_text_has_its_vector_within_the_tenant_while_its_chunk_lives(store: ChunkStore) -> None:
    await store.write_profile(PROFILE)
    mine, twin, theirs = chunk("c1", "word"), chunk("c2", "word", document_id="d2"), chunk("c3", "word", tenant="other")
    known = text_hash(mine)
    await store.write_chunks([record(mine, [1.0, 0.0, 0.0]), record(twin), record(chunk("c4", "other"))])
    assert await store.known_vectors("acme", [known, text_hash(chunk("c4", "other")), "nope"]) == {
        known: pytest.approx([1.0, 0.0, 0.0])
    }
    assert await store.known_vectors("other", [known]) == {}
    await store.write_chunks([record(theirs)])
    assert await store.known_vectors("other", [known]) == {}
    await store.write_vectors({"c2": [0.0, 1.0, 0.0]}, PROFILE.embedder)
    await store.remove_chunks(["c1"])
    assert await store.known_vectors("acme", [known]) == {known: pytest.approx([0.0, 1.0, 0.0])}
    await store.remove_chunks(["c2"])
    assert await store.known_vectors("acme", [known]) == {}
    assert await store.known_vectors("acme", []) == {}


async def test_after_dropping_vectors_words_still_answer_and_other_lengths_fit(store: ChunkStore) -> None:
    await store.drop_vectors()
    await store.write_profile(PROFILE)
    await store.write_chunks([record(chunk("c1", "word"), [1.0, 0.0, 0.0]), record(chunk("c2", "word"))])
    await store.drop_vectors()
    assert await store.profile() is None
    assert await store.search_dense([1.0, 0.0, 0.0], ALL, 5) == []
    assert await bm25(store, "word") == ["c1", "c2"]
    assert await store.counts(ALL) == StoreCounts(0, 2, 2)
    assert await store.known_vectors("acme", [text_hash(chunk("c1", "word"))]) == {}
    assert {item.id for item in await store.pending_chunks(9)} == {"c1", "c2"}
    await store.write_profile(StoreProfile("wider", 5))
    await store.write_vectors({"c2": [0.0, 0.0, 0.0, 0.0, 1.0]}, "wider")
    assert [hit.chunk.id for hit in await store.search_dense([0.0, 0.0, 0.0, 0.0, 1.0], ALL, 5)] == ["c2"]
    assert await store.counts(ALL) == StoreCounts(0, 2, 1)


async def test_chunks_without_vector_stay_out_of_the_dense_leg_only(store: ChunkStore) -> None:
    await store.write_profile(PROFILE)
    await store.write_chunks([record(chunk("c1", "same"), [0.0, 0.6, 0.8]), record(chunk("c2", "same"))])
    assert [hit.chunk.id for hit in await store.search_dense([0.0, 1.0, 0.0], ALL, 5)] == ["c1"]
    assert await bm25(store, "same") == ["c1", "c2"]
    assert {name: pytest.approx([0.0, 0.6, 0.8]) for name in ["c1"]} == await store.vectors(["c1", "c2"])


async def test_vectors_may_come_after_a_start_without_them(store: ChunkStore) -> None:
    await store.write_chunks([record(chunk("c1", "first"))])
    await store.write_profile(PROFILE)
    await store.write_chunks([record(chunk("c2", "second"), [1.0, 0.0, 0.0])])
    assert [hit.chunk.id for hit in await store.search_dense([1.0, 0.0, 0.0], ALL, 5)] == ["c2"]
    assert await store.profile() == PROFILE


async def test_deleted_chunks_leave_results_and_statistics(store: ChunkStore) -> None:
    await store.write_chunks([record(chunk(f"c{n}", "common" if n else "common rare")) for n in range(4)])
    await store.remove_chunks(["c1", "c2"])
    left = await store.search_bm25({"rare": 1}, ALL, 5)
    fresh = MemoryStore()
    await fresh.write_chunks([record(chunk("c0", "common rare")), record(chunk("c3", "common"))])
    expected = await fresh.search_bm25({"rare": 1}, ALL, 5)
    assert [hit.score for hit in left] == pytest.approx([hit.score for hit in expected], rel=1e-5)
    await fresh.aclose()


async def test_a_terms_score_is_multiplied_by_its_weight_in_the_query(store: ChunkStore) -> None:
    await store.write_chunks([record(chunk("c1", "red pump")), record(chunk("c2", "blue valve"))])
    [whole] = await store.search_bm25({"pump": 1.0}, ALL, 5)
    [part] = await store.search_bm25({"pump": 0.25}, ALL, 5)
    assert part.score == pytest.approx(0.25 * whole.score, rel=1e-5)
    for heavy, light, first in (("pump", "valv", "c1"), ("valv", "pump", "c2")):
        found = await store.search_bm25({heavy: 1.0, light: 0.25}, ALL, 5)
        assert found[0].chunk.id == first


async def test_statistics_are_the_tenants_own(store: ChunkStore) -> None:
    await store.write_chunks([record(chunk("c1", "needle hay")), record(chunk("c2", "hay"))])
    [alone] = await store.search_bm25({"needl": 1}, ALL, 5)
    await store.write_chunks([record(chunk(f"x{n}", "needle", tenant="other")) for n in range(20)])
    [among_others] = await store.search_bm25({"needl": 1}, ALL, 5)
    assert among_others.score == alone.score


@pytest.mark.parametrize(
    ("scope", "visible"),
    [
        (Scope("acme"), {"open"}),
        (ALL, {"open", "hr", "wiki"}),
        (ALL.narrowed(collections=["wiki"]), {"wiki"}),
        (ALL.narrowed(document_ids=["d-hr", "unknown"]), {"hr"}),
        (ALL.narrowed(source_types=["pdf"]), {"wiki"}),
        (ALL.narrowed(collections=[]), set()),
        (Scope("nobody", ALL.groups), set()),
    ],
    ids=["no groups", "groups", "collection", "document", "source type", "empty set", "unknown tenant"],
)
async def test_every_read_stays_in_the_scope(store: ChunkStore, scope: Scope, visible: set[str]) -> None:
    places: dict[str, dict[str, object]] = {
        "open": {},
        "hr": {"groups": ("hr", "board")},
        "wiki": {"groups": ("legal",), "collection": "wiki", "source_type": "pdf"},
        "theirs": {"tenant": "other"},
    }
    await store.write_profile(PROFILE)
    for name, place in places.items():
        await store.write_chunks([record(chunk(name, "word", document_id=f"d-{name}", **place), [1.0, 0.0, 0.0])])
        await store.write_document(document(f"d-{name}", source=name, **place))
    assert set(await bm25(store, "word", scope)) == visible
    assert {hit.chunk.id for hit in await store.search_dense([1.0, 0.0, 0.0], scope, 10)} == visible
    assert {item.source for item in await store.documents(scope)} == visible
    assert {name for name in places if await store.document(f"d-{name}", scope)} == visible
    assert {name for name in places if await store.chunks(f"d-{name}", scope)} == visible
    assert await store.counts(scope) == StoreCounts(len(visible), len(visible), 0)


async def test_the_filter_comes_before_the_limit(store: ChunkStore) -> None:
    await store.write_profile(PROFILE)
    hidden = [chunk(f"h{n}", "word word word", groups=("secret",)) for n in range(30)]
    await store.write_chunks([record(item, [1.0, 0.0, 0.0]) for item in hidden])
    await store.write_chunks([record(chunk("mine", "word and much more beside it"), [0.5, 0.5, 0.0])])
    assert await bm25(store, "word", limit=1) == ["mine"]
    assert [hit.chunk.id for hit in await store.search_dense([1.0, 0.0, 0.0], ALL, 1)] == ["mine"]


async def test_documents_come_with_text_alone_and_without_in_a_list(store: ChunkStore) -> None:
    stored = document(groups=("hr",), metadata={"tags": ["é", 1, None]}, chunk_count=2)
    await store.write_document(stored)
    await store.write_document(document("b", source="0.md"))
    assert await store.document("doc", ALL) == stored
    assert await store.documents(ALL) == [document("b", source="0.md", text=""), replace(stored, text="")]
    assert await store.content_hash("doc") == "hash-1"
    await store.remove_document("doc")
    assert await store.document("doc", ALL) is None


async def test_chunks_of_a_document_come_in_their_order(store: ChunkStore) -> None:
    await store.write_chunks([record(chunk(f"c{n}", position=n)) for n in (2, 0, 1)])
    assert [item.id for item in await store.chunks("doc", ALL)] == ["c0", "c1", "c2"]
    assert sorted(await store.chunk_ids("doc")) == ["c0", "c1", "c2"]


async def test_many_tasks_may_read_and_write_at_once(store: ChunkStore) -> None:
    await store.write_profile(PROFILE)

    async def write(number: int) -> None:
        await store.write_chunks([record(chunk(f"c{number}", f"word w{number}"), [1.0, number / 40, 0.0])])

    async def read() -> None:
        await store.search_dense([1.0, 0.0, 0.0], ALL, 5)
        await store.search_bm25({"word": 1}, ALL, 5)

    await asyncio.gather(*(write(number) for number in range(40)), *(read() for _ in range(40)))
    assert len(await bm25(store, "word", limit=100)) == 40
    assert (await store.counts(ALL)).chunks == 40


async def test_backends_agree_on_ranking_and_scores(tmp_path: Path) -> None:
    chance = random.Random(5)
    words = [f"w{number}" for number in range(60)]
    texts = [" ".join(chance.choices(words, k=chance.randint(1, 80))) for _ in range(80)]
    items = [record(chunk(f"c{n}", text), [chance.gauss(0, 1) for _ in range(3)]) for n, text in enumerate(texts)]
    with ExitStack() as opened:
        memory, *others = [
            opened.enter_context(opened_store(name, tmp_path)) for name in ("memory", "embedded", "server")
        ]
        for store in (memory, *others):
            await store.write_profile(PROFILE)
            await store.write_chunks(items)
            await store.remove_chunks([f"c{n}" for n in range(0, 80, 7)])
        for _ in range(10):
            query, vector = count_terms(" ".join(chance.choices(words, k=4))), [chance.gauss(0, 1) for _ in range(3)]
            for other in others:
                _agree(await memory.search_bm25(query, ALL, 10), await other.search_bm25(query, ALL, 10))
                _agree(await memory.search_dense(vector, ALL, 10), await other.search_dense(vector, ALL, 10))


def _agree(one: list[LegHit], other: list[LegHit]) -> None:
    assert [hit.chunk.id for hit in one] == [hit.chunk.id for hit in other]
    assert [hit.score for hit in one] == pytest.approx([hit.score for hit in other], rel=1e-4, abs=1e-5)


async def test_a_closed_folder_opens_again_as_it_was(tmp_path: Path) -> None:
    first = EdgeStore(tmp_path / "kb")
    await first.write_profile(PROFILE)
    await first.write_chunks([record(chunk("c1", "kept 汉字"), [1.0, 0.0, 0.0])])
    await first.write_document(document())
    await first.aclose()
    await first.aclose()
    again = EdgeStore(tmp_path / "kb")
    assert await again.profile() == PROFILE
    assert await bm25(again, "汉字") == ["c1"]
    assert await again.document("doc", ALL) == document()
    assert [hit.chunk.id for hit in await again.search_dense([1.0, 0.0, 0.0], ALL, 5)] == ["c1"]
    await again.aclose()


@pytest.mark.parametrize("left", ["chunks.new", "documents.new", "chunks.PID.new", "chunks.1.new"])
async def test_what_a_kill_left_while_the_folder_was_made_is_removed(tmp_path: Path, left: str) -> None:
    half_made = tmp_path / "kb" / left.replace("PID", str(os.getpid()))
    half_made.mkdir(parents=True)
    (half_made / "edge_config.json").write_text("{", encoding="utf-8")
    await EdgeStore(tmp_path / "kb").aclose()
    assert sorted(path.name for path in (tmp_path / "kb").iterdir()) == ["chunks", "documents", "lock"]


async def test_a_folder_from_before_the_text_hash_gets_its_index(tmp_path: Path) -> None:
    await EdgeStore(tmp_path / "kb").aclose()
    shard = qdrant_edge.EdgeShard.load(str(tmp_path / "kb" / "chunks"))
    shard.update(qdrant_edge.UpdateOperation.delete_field_index("text_hash"))
    shard.close()
    await EdgeStore(tmp_path / "kb").aclose()
    shard = qdrant_edge.EdgeShard.load(str(tmp_path / "kb" / "chunks"))
    assert "text_hash" in shard.info().payload_schema
    shard.close()


@pytest.mark.parametrize("name", ["chunks", "documents"])
def test_folders_of_somebody_else_are_refused_and_stay_as_they_are(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name / "a.md").write_text("# A")
    for open_ in (EdgeStore, open_store):
        with pytest.raises(KnowledgeBaseError, match=rf"{name}' is there and is no part .* for example .*\.graphrag'"):
            open_(tmp_path)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a.md", name]


DROPPED = """
import asyncio, os, signal, sys
from pathlib import Path
from graphrag_agent.retrieval.stores import edge

async def drop(folder):
    store = edge.EdgeStore(folder)
    remove = edge.remove_profile
    def kill(folder):
        if sys.argv[2] == "after":
            remove(folder)
        os.kill(os.getpid(), signal.SIGKILL)
    edge.remove_profile = kill
    await store.drop_vectors()

asyncio.run(drop(Path(sys.argv[1])))
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL on this system")
@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_kill_while_vectors_are_dropped_leaves_all_or_none(tmp_path: Path, when: str) -> None:
    store = EdgeStore(tmp_path / "kb")
    await store.write_profile(PROFILE)
    await store.write_chunks([record(chunk("c1", "word"), [1.0, 0.0, 0.0])])
    await store.aclose()
    command = [sys.executable, "-c", DROPPED, str(tmp_path / "kb"), when]
    assert (await asyncio.to_thread(subprocess.run, command, check=False)).returncode == -signal.SIGKILL
    again = EdgeStore(tmp_path / "kb")
    assert await bm25(again, "word") == ["c1"]
    kept = when == "before"
    assert (await again.profile(), (await again.counts(ALL)).pending) == ((PROFILE, 0) if kept else (None, 1))
    await again.drop_vectors()
    await again.write_profile(StoreProfile("wider", 5))
    await again.write_vectors({"c1": [0.0, 0.0, 0.0, 0.0, 1.0]}, "wider")
    assert [hit.chunk.id for hit in await again.search_dense([0.0, 0.0, 0.0, 0.0, 1.0], ALL, 5)] == ["c1"]
    await again.aclose()


async def test_a_second_opener_is_told_where_the_folder_is_open(tmp_path: Path) -> None:
    first = EdgeStore(tmp_path / "kb")
    with pytest.raises(StoreLockedError, match=r"kb' is open in this process: close it there, or use another folder"):
        EdgeStore(tmp_path / "kb")
    await first.aclose()
    await EdgeStore(tmp_path / "kb").aclose()


NAMES = st.sampled_from(["a", "b", "c"])
ITEMS = st.fixed_dictionaries(
    {
        "tenant": NAMES,
        "groups": st.lists(NAMES, max_size=2, unique=True).map(tuple),
        "collection": NAMES,
        "document_id": NAMES,
        "source_type": NAMES,
    }
)
NARROWING = st.none() | st.frozensets(NAMES, max_size=2)
SCOPES = st.builds(Scope, NAMES, st.frozensets(NAMES | st.just(EVERYONE), max_size=2), NARROWING, NARROWING, NARROWING)


@pytest.fixture(scope="module", params=BACKENDS)
def kept_store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChunkStore]:
    with opened_store(request.param, tmp_path_factory.mktemp("kb")) as opened:
        asyncio.run(opened.write_profile(PROFILE))
        yield opened


@settings(max_examples=25, deadline=None)
@given(places=st.lists(ITEMS, min_size=1, max_size=8), scopes=st.lists(SCOPES, min_size=3, max_size=6))
def test_the_filter_and_the_predicate_agree(
    kept_store: ChunkStore, places: list[dict[str, object]], scopes: list[Scope]
) -> None:
    items = [chunk(f"c{number}", "word", **place) for number, place in enumerate(places)]

    async def check() -> None:
        await kept_store.write_chunks([record(item, [1.0, 0.0, 0.0]) for item in items])
        for scope in scopes:
            allowed = {item.id for item in items if scope.allows(item)}
            assert set(await bm25(kept_store, "word", scope)) == allowed
            assert {hit.chunk.id for hit in await kept_store.search_dense([1.0, 0.0, 0.0], scope, 10)} == allowed

    try:
        asyncio.run(check())
    finally:
        asyncio.run(kept_store.remove_chunks([item.id for item in items]))
