"""What the search tool asks of a knowledge base, and what its message holds."""

from __future__ import annotations

from typing import Any

from graphrag_agent.documents import Chunk, Hit, short_id
from graphrag_agent.graph.policy.pairing import tool_message
from graphrag_agent.retrieval.scope import Scope
from graphrag_agent.retrieval.search.result import SearchResult
from graphrag_agent.retrieval.search.strategies import Strategy
from graphrag_agent.tools.evidence_message import chunk_ids_of, read_evidence
from graphrag_agent.tools.knowledge_search import build_knowledge_search
from tests.canned import CannedKnowledge

DOCUMENT = "Leave lasts ten days.\n\nIt is paid.\n\nAsk the desk."
SCOPE = Scope("default")
TRACE = {
    "strategy": {"name": "direct", "writer": "none"},
    "queries": ["leave"],
    "legs": {"bm25": {"candidates": 2, "milliseconds": 0.1}},
    "fusion": "dbsf",
    "rerank": {"skipped": "no reranker"},
    "milliseconds": 0.2,
    "dropped": [],
}


class Neighbours:
    """Finds the second and the first paragraph of one document."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.scopes: list[Scope | None] = []

    async def asearch(self, query: str, **asked: Any) -> SearchResult:
        self.asked.append(asked)
        return SearchResult(query, tuple(_hit(at) for at in (1, 0)), trace=TRACE)

    async def aread(
        self, document_id: str, *, start: int = 0, end: int | None = None, scope: Scope | None = None
    ) -> str:
        self.scopes.append(scope)
        return DOCUMENT[start:end]


def _hit(position: int) -> Hit:
    text = DOCUMENT.split("\n\n")[position]
    start = DOCUMENT.index(text)
    chunk = Chunk(
        str(position),
        "d",
        "default",
        "c",
        (),
        "leave.md",
        "md",
        "Leave",
        "Leave",
        None,
        position,
        text,
        start,
        start + len(text),
    )
    return Hit(short_id(str(position)), chunk, 1.0, {})


async def ask(knowledge: Any, **more: Any) -> Any:
    spec = build_knowledge_search(knowledge, query_writer=more.pop("writer", None))
    assert spec.direct is not None
    return tool_message({"id": "1", "name": spec.name}, *await spec.direct(query="leave", scope=SCOPE, **more))


async def test_neighbouring_passages_are_one_under_the_best_ones_id() -> None:
    knowledge = Neighbours()
    message = await ask(knowledge, document_ids=["d"])
    (found,) = read_evidence([message]).values()
    assert (found.id, found.chunk_id, found.merged) == (short_id("1"), "1", ("0",))
    assert found.text == DOCUMENT[found.start : found.end] == "Leave lasts ten days.\n\nIt is paid."
    assert chunk_ids_of(message) == {"0", "1"}
    assert message.artifact["trace"]["merged_into"] == {short_id("1"): 1}
    assert knowledge.scopes == [SCOPE.narrowed(document_ids=["d"])], "read under the scope of the search"


async def test_the_trace_rides_on_the_artifact_and_a_knowledge_base_without_one_has_none() -> None:
    trace = (await ask(Neighbours())).artifact["trace"]
    assert (trace["strategy"], trace["fusion"], trace["legs"]["bm25"]["candidates"]) == ("direct", "dbsf", 2)
    assert set((await ask(CannedKnowledge())).artifact) == {"hits"}


async def test_the_request_may_choose_the_strategy_and_leave_out_the_reranker() -> None:
    class Writer:
        async def write(self, query: str, kind: str) -> list[str]:
            raise AssertionError

    knowledge, writer = Neighbours(), Writer()
    await ask(knowledge, strategy="hyde", rerank=False, writer=writer)
    await ask(knowledge, strategy=None, rerank=True)
    first, second = knowledge.asked
    assert (first["strategy"], first["rerank"]) == (Strategy("hyde", writer), False)
    assert set(second) == {"scope", "top_k"}, "true switches nothing on"


def test_a_model_can_fill_in_neither() -> None:
    spec = build_knowledge_search(Neighbours())
    assert set(spec.arguments.model_fields) == {"query", "top_k", "source_type", "document_ids"}
    assert spec.injected == {"scope", "strategy", "rerank"}
