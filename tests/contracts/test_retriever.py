"""The knowledge base as a LangChain retriever, by LangChain's own suite, over both stores."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.retrievers import BaseRetriever
from langchain_tests.integration_tests import RetrieversIntegrationTests

from graphrag_agent.errors import SettingsError
from graphrag_agent.identity import Principal, acting_as
from graphrag_agent.retrieval.knowledge_base import KnowledgeBase
from graphrag_agent.retrieval.retriever import KnowledgeRetriever
from graphrag_agent.retrieval.scope import Scope
from tests.hashing_embeddings import HashingEmbeddings

PAGES = {
    "refunds.md": "# Refunds\n\nRefunds are paid within 14 days.\n",
    "leave.md": "# Leave\n\nUnpaid leave is paid by nobody.\n",
    "pump.md": "# Pump\n\nE-1042 means that the pump was not paid.\n",
    "gate.md": "# Gate\n\nThe gate is paid for.\n",
}


@pytest.fixture(params=["memory", "embedded"])
def knowledge(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[KnowledgeBase]:
    monkeypatch.chdir(tmp_path)
    for name, text in PAGES.items():
        Path(name).write_text(text, encoding="utf-8")
    location = ":memory:" if request.param == "memory" else "kb"
    with KnowledgeBase.open(location, embedder=HashingEmbeddings()) as opened:
        opened.ingest(sorted(PAGES))
        yield opened


class TestKnowledgeRetrieverIsAStandardRetriever(RetrieversIntegrationTests):
    """The suite that LangChain gives to integration packages."""

    @pytest.fixture(autouse=True)
    def _over_each_store(self, knowledge: KnowledgeBase) -> None:
        self._knowledge = knowledge

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return KnowledgeRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"knowledge": self._knowledge}

    @property
    def retriever_query_example(self) -> str:
        return "what is paid"


def test_a_document_is_a_hit_with_its_place(knowledge: KnowledgeBase) -> None:
    [found] = knowledge.as_retriever(k=1).invoke("refunds within how many days?")
    [hit] = knowledge.search("refunds within how many days?", top_k=1).hits
    assert (found.id, found.page_content) == (hit.chunk.id, PAGES["refunds.md"].strip())
    assert found.metadata == {
        "id": hit.id,
        "source": "refunds.md",
        "title": "Refunds",
        "heading": "Refunds",
        "page": None,
        "start": 0,
        "end": len(found.page_content),
        "score": hit.score,
        "document_id": hit.chunk.document_id,
    }
    place = {"start": found.metadata["start"], "end": found.metadata["end"]}
    assert knowledge.read(found.metadata["document_id"], **place) == found.page_content


async def test_async_finds_what_sync_finds(knowledge: KnowledgeBase) -> None:
    retriever = knowledge.as_retriever(legs=["bm25"])
    assert await retriever.ainvoke("E-1042", k=2) == retriever.invoke("E-1042", k=2)
    assert [found.metadata["source"] for found in await retriever.ainvoke("E-1042")] == ["pump.md"]
    assert await retriever.abatch(["E-1042", " "]) == [retriever.invoke("E-1042"), []]


def test_who_acts_when_it_is_called_decides_what_it_may_see(knowledge: KnowledgeBase) -> None:
    retriever = knowledge.as_retriever()
    with acting_as(Principal("rival")):
        assert retriever.invoke("refunds") == []
        public = knowledge.as_retriever(scope=Scope.of(Principal()))
        assert [found.metadata["source"] for found in public.invoke("refunds", k=1)] == ["refunds.md"]
    assert [found.metadata["source"] for found in retriever.invoke("refunds", k=1)] == ["refunds.md"]


def test_a_number_below_one_is_refused(knowledge: KnowledgeBase) -> None:
    with pytest.raises(SettingsError, match="k=0"):
        knowledge.as_retriever(k=0)
    with pytest.raises(SettingsError, match="k=0"):
        knowledge.as_retriever().invoke("refunds", k=0)
