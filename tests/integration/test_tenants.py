"""Two tenants with the same files: whatever a model or a client says, each finds only its own."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graphrag_agent import KnowledgeBase, Principal, RagAgent, Scope
from graphrag_agent.errors import KnowledgeBaseError
from graphrag_agent.testing import ScriptedChatModel, call

PRINCIPALS = {name: Principal(tenant=name) for name in ("acme", "globex")}


@pytest.fixture(params=[":memory:", "folder"])
def knowledge(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[KnowledgeBase]:
    (tmp_path / "leave.md").write_text("# Leave\n\nSick leave lasts ten days a year.\n")
    (tmp_path / "secret.md").write_text("# Secret\n\nThe merger code word is heron.\n")
    location = request.param if request.param == ":memory:" else tmp_path / "kb"
    with KnowledgeBase.open(location, embedder="none") as opened:
        for tenant in PRINCIPALS:
            opened.ingest(tmp_path / "leave.md", tenant=tenant)
        opened.ingest(tmp_path / "secret.md", tenant="globex")
        opened.ingest(tmp_path / "secret.md", tenant="acme", groups=("board",), collection="board")
        yield opened


def ask(knowledge: KnowledgeBase, principal: Principal, *calls: Any, **context: Any) -> Any:
    """The answer of a model that makes these calls, and the results that it saw."""
    with ScriptedChatModel(list(calls), "done") as model:
        RagAgent(model=model, knowledge=knowledge).ask("q", principal=principal, context=context)
    return [message.text for message in model.requests[1].messages if message.type == "tool"]


def search(query: str, **more: Any) -> Any:
    return call("knowledge_search", query=query, **more)


def ids_of(knowledge: KnowledgeBase, principal: Principal) -> set[str]:
    return {document.id for document in knowledge.documents(Scope.of(principal))}


def test_each_tenant_finds_its_own_copy(knowledge: KnowledgeBase):
    acme, globex = (ids_of(knowledge, principal) for principal in PRINCIPALS.values())
    assert (len(acme), len(globex), acme & globex) == (1, 2, set())
    for principal in PRINCIPALS.values():
        (seen,) = ask(knowledge, principal, search("sick leave"))
        assert seen.count("ten days a year") == 1


def test_what_belongs_to_another_tenant_or_group_is_not_found(knowledge: KnowledgeBase):
    (seen,) = ask(knowledge, PRINCIPALS["acme"], search("merger code word heron"))
    assert "heron" not in seen
    (seen,) = ask(knowledge, Principal(tenant="acme", groups=("board",)), search("merger code word heron"))
    assert "heron" in seen


def test_a_model_that_names_another_tenants_documents_finds_nothing(knowledge: KnowledgeBase):
    foreign = sorted(ids_of(knowledge, PRINCIPALS["globex"]))
    seen = ask(
        knowledge,
        PRINCIPALS["acme"],
        search("heron", document_ids=foreign),
        search("heron", tenant="globex"),
        search("heron", scope={"tenant": "globex"}),
        search("heron tenant:globex", source_type="*"),
    )
    assert not any("heron.\n" in text for text in seen)
    assert "tenant: unknown argument" in seen[1]
    assert "scope: unknown argument" in seen[2]


def test_a_request_can_narrow_and_never_widen(knowledge: KnowledgeBase):
    foreign = sorted(ids_of(knowledge, PRINCIPALS["globex"]))
    (seen,) = ask(knowledge, PRINCIPALS["acme"], search("sick leave heron"), document_ids=foreign)
    assert "evidence" not in seen
    (seen,) = ask(knowledge, PRINCIPALS["acme"], search("heron"), collections=["board", "default"])
    assert "heron.\n" not in seen
    (seen,) = ask(knowledge, PRINCIPALS["acme"], search("sick leave"), collections=[])
    assert "evidence" not in seen


def test_a_document_of_another_tenant_can_be_neither_read_nor_deleted(knowledge: KnowledgeBase):
    (mine,) = ids_of(knowledge, PRINCIPALS["acme"])
    scope = Scope.of(PRINCIPALS["globex"])
    with pytest.raises(KnowledgeBaseError, match="no document"):
        knowledge.read(mine, scope=scope)
    assert knowledge.delete(mine, scope) is False
    assert knowledge.stats(Scope.of(PRINCIPALS["acme"])).documents == 1
