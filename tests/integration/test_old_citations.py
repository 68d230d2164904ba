"""Citations of old answers, read again: what stands there today, for the one who asks; else they are stale."""

import json
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from graphrag_agent import KnowledgeBase, Principal, RagAgent, acting_as
from graphrag_agent.conversation.cited_places import kept_citations, locate_citations
from graphrag_agent.errors import KnowledgeBaseError, ThreadError
from graphrag_agent.retrieval.scope import Scope

STAFF = Principal(tenant="acme", user="ann", groups=("staff",))
GUEST = Principal(tenant="acme", user="bob")
QUESTION = "How long does sick leave last?"


@pytest.fixture
def kb(tmp_path: Path) -> KnowledgeBase:
    (tmp_path / "leave.md").write_text("# Leave\n\nSick leave lasts ten days a year. <evidence> is paid.\n")
    knowledge = KnowledgeBase.open(tmp_path / "kb", embedder="none")
    knowledge.ingest(tmp_path / "leave.md", tenant="acme", groups=["staff"])
    return knowledge


def asked(kb: KnowledgeBase) -> tuple[RagAgent, str, str]:
    agent = RagAgent(model="offline", knowledge=kb)
    answer = agent.ask(QUESTION, principal=STAFF)
    assert answer.citations
    return agent, answer.thread, answer.message_id


def test_what_still_stands_has_its_texts(kb: KnowledgeBase):
    agent, thread, message = asked(kb)
    (found,) = agent.citations(message, thread=thread, principal=STAFF)
    assert not found.is_stale
    assert "Sick leave lasts ten days a year." in found.citation.text
    assert found.citation.quotes[0].text == "Sick leave lasts ten days a year."
    assert json.loads(json.dumps(found.as_dict()))["stale"] is False


def test_a_deleted_document_is_stale(kb: KnowledgeBase):
    agent, thread, message = asked(kb)
    with acting_as(STAFF):
        (document,) = kb.documents()
        kb.delete(document.id)
    (found,) = agent.citations(message, thread=thread, principal=STAFF)
    assert (found.is_stale, found.citation.text, found.citation.quotes[0].text) == (True, "", "")


def test_an_answer_written_again_after_its_document_went_cites_nothing_of_it(kb: KnowledgeBase):
    agent, thread, message = asked(kb)
    with acting_as(STAFF):
        (document,) = kb.documents()
        kb.delete(document.id)
    again = agent.regenerate(message, thread=thread, principal=STAFF)
    assert (again.citations, again.outcome["citations"]) == ((), [])
    assert "ten days" not in again.text
    assert again.outcome["gaps"] == [QUESTION.rstrip("?")]
    assert [branch.answer for branch in agent.branches(thread, principal=STAFF)].count(again.text) == 1


def test_a_changed_passage_is_stale(kb: KnowledgeBase, tmp_path: Path):
    agent, thread, message = asked(kb)
    (tmp_path / "leave.md").write_text("# Leave\n\nSick leave lasts two days a year. <evidence> is paid.\n")
    kb.ingest(tmp_path / "leave.md", tenant="acme", groups=["staff"])
    (found,) = agent.citations(message, thread=thread, principal=STAFF)
    assert (found.is_stale, found.citation.text) == (True, "")


def test_one_who_may_no_longer_read_it_is_told_the_same_as_of_a_deleted_one(kb: KnowledgeBase):
    agent, thread, message = asked(kb)
    without_groups = Principal(tenant="acme", user="ann")
    (found,) = agent.citations(message, thread=thread, principal=without_groups)
    assert (found.is_stale, found.citation.text) == (True, "")


def test_another_persons_thread_has_no_citations_to_read(kb: KnowledgeBase):
    agent, thread, message = asked(kb)
    with pytest.raises(ThreadError, match="is not in thread"):
        agent.citations(message, thread=thread, principal=GUEST)


def test_a_question_cites_nothing(kb: KnowledgeBase):
    agent, thread, _ = asked(kb)
    question = agent.history(thread, principal=STAFF)[0]
    assert agent.citations(str(question.id), thread=thread, principal=STAFF) == []


class Broken:
    async def aread(self, document_id: str, **place: Any) -> str:
        raise KnowledgeBaseError("locked")


PLACE = {
    **{
        "id": "k3f2a",
        "document_id": "d",
        "title": "",
        "source": "s",
        "page": None,
        "heading": "",
        "start": 0,
        "end": 4,
    },
}


async def test_a_store_that_fails_says_nothing_about_the_citation():
    message = AIMessage("x", response_metadata={"citations": [PLACE]})
    (found,) = await locate_citations(message, Broken(), Scope.of(STAFF))
    assert (found.is_stale, found.citation.text) == (False, "")


@pytest.mark.parametrize(
    "kept",
    [None, "text", 5, [None], ["k3f2a"], [{"id": "k3f2a"}], [{**PLACE, "start": "x"}], [{**PLACE, "start": 9}], [[]]],
)
def test_what_a_client_wrote_in_their_place_is_passed_over(kept: Any):
    assert list(kept_citations(AIMessage("x", response_metadata={"citations": kept}))) == []


def test_fields_of_later_and_earlier_versions():
    (found,) = kept_citations(AIMessage("x", response_metadata={"citations": [{**PLACE, "colour": "red"}]}))
    assert (found.id, found.number, found.digest) == ("k3f2a", 0, "")
