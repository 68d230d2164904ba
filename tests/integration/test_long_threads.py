"""Threads of a thousand turns, questions that are too long, and what earlier answers cited coming back."""

import asyncio
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from graphrag_agent import Budget, KnowledgeBase, Principal, RagAgent, Scope, build_rag_graph
from graphrag_agent.errors import KnowledgeBaseError, QuestionTooLongError
from graphrag_agent.graph.prompts.history import tokens_of
from graphrag_agent.graph.recall import STALE_NOTE
from graphrag_agent.models.text_tools.model import TextToolsModel
from graphrag_agent.testing import ScriptedChatModel, call
from graphrag_agent.token_estimate import estimate_tokens
from tests.canned import CannedKnowledge

LEAVE = "# Leave\n\nSick leave lasts ten days a year.\n"
PENSION = "# Pension\n\nThe pension plan pays five percent of the salary.\n"
ACME = Principal(tenant="acme", groups=("staff",))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "leave.md").write_text(LEAVE)
    (tmp_path / "pension.md").write_text(PENSION)
    return tmp_path


@pytest.fixture(params=[":memory:", "folder"])
def knowledge(request: pytest.FixtureRequest, folder: Path) -> Iterator[KnowledgeBase]:
    location = request.param if request.param == ":memory:" else folder / "kb"
    with KnowledgeBase.open(location, embedder="none") as opened:
        opened.ingest(folder / "leave.md", tenant="acme", groups=("staff",))
        opened.ingest(folder / "pension.md", tenant="acme")
        yield opened


def search(query: str) -> Any:
    return call("knowledge_search", query=query)


def cite_all(messages: list[BaseMessage], tools: Any) -> str:
    """An answer that cites whatever evidence the last message shows."""
    return "It says so " + " ".join(f"[{id_}]" for id_ in shown_ids(messages[-1].text)) + "."


def shown_ids(text: str) -> list[str]:
    return [part.partition('"')[0] for part in text.split('<evidence id="')[1:]]


class Asked:
    """A thread whose first answer cites leave and pension, and an agent for what follows."""

    def __init__(self, knowledge: KnowledgeBase, *steps: Any, saver: Any = None, **budget: Any) -> None:
        self.model = ScriptedChatModel([search("sick leave"), search("pension plan")], self._cites, *steps)
        saver = saver or InMemorySaver()
        self.agent = RagAgent(model=self.model, knowledge=knowledge, checkpointer=saver, budget=Budget(**budget))
        self.first = self.ask("What of sick leave and pensions?")
        self.ids = [citation.id for citation in self.first.citations]

    def _cites(self, messages: list[BaseMessage], tools: Any) -> str:
        found = [id_ for message in messages if message.type == "tool" for id_ in shown_ids(message.text)]
        return f"Ten days [{found[0]}]. Five percent [{next(id_ for id_ in found if id_ != found[0])}]."

    def ask(self, question: str, principal: Principal = ACME, **context: Any) -> Any:
        return self.agent.ask(question, thread="t", principal=principal, context=context)

    @property
    def prompt(self) -> list[BaseMessage]:
        return self.model.requests[-1].messages


def test_what_was_cited_can_be_cited_again_without_a_search(knowledge: KnowledgeBase):
    def reply(messages: list[BaseMessage], tools: Any) -> str:
        return f"The second one pays five percent [{shown_ids(messages[-1].text)[1]}]."

    asked = Asked(knowledge, reply)
    answer = asked.ask("And what does the second one say?")
    asked.model.assert_finished()
    (citation,) = answer.citations
    assert (citation.id, citation.text) == (asked.ids[1], PENSION.strip())
    assert (answer.trace, answer.outcome["warnings"]) == ((), [])
    question = asked.prompt[-1]
    assert question.text.startswith("And what does the second one say?\n\n<evidence id=")
    assert shown_ids(question.text) == asked.ids
    history = asked.agent.history("t", principal=ACME)
    assert history[2].text == "And what does the second one say?", "the thread keeps the question as it was asked"


@pytest.mark.parametrize("whose", ["nobody's", "the client's", "the server's"])
@pytest.mark.parametrize("has_tool_calls", [True, False], ids=["native", "text"])
def test_a_tool_may_have_the_name_of_what_was_cited(knowledge: KnowledgeBase, whose: str, has_tool_calls: bool):
    def earlier_evidence(topic: str) -> str:
        """Looks into the archive."""
        return f"The archive on {topic}."

    def reply(messages: list[BaseMessage], tools: Any) -> str:
        return f"It pays five percent [{asked.ids[1]}]."

    wanted = '<tool_call>{"name": "earlier_evidence", "arguments": {"topic": "pay"}}</tool_call>'
    saver = InMemorySaver()
    asked = Asked(knowledge, call("earlier_evidence", topic="pay") if has_tool_calls else wanted, reply, saver=saver)
    model: Any = asked.model if has_tool_calls else TextToolsModel(inner=asked.model)
    tools = [earlier_evidence] if whose == "the server's" else []
    asked.agent = RagAgent(model=model, knowledge=knowledge, checkpointer=saver, tools=tools)
    archive = {"name": "earlier_evidence", "parameters": {"type": "object", "properties": {"topic": {}}}}
    own = {"client_tools": [archive]} if whose == "the client's" else {}
    answer = asked.ask("And what does the second one say?", **own)
    if own:
        (waiting,) = answer.pending
        results = {waiting["id"]: "The archive on pay."}
        answer = asked.agent.resume(results, thread="t", principal=ACME, context=own)
    assert [citation.id for citation in answer.citations] == asked.ids[1:]
    assert answer.outcome["warnings"] == []
    told = [message.text for message in asked.prompt if message.type != "system"]
    shown = "no tool" if whose == "nobody's" else "The archive on pay."
    assert [shown in text for text in told].index(True) == len(told) - 1, "behind the call, not with the question"
    assert [shown_ids(text) for text in told if "what does the second" in text] == [asked.ids]


def test_what_came_back_can_come_back_again_and_counts_as_shown(knowledge: KnowledgeBase):
    asked = Asked(knowledge, cite_all, [search("sick leave")], cite_all)
    asked.ask("Again?")
    asked.ask("And again, please search?")
    results = [message.text for message in asked.prompt if message.type == "tool"]
    assert shown_ids(results[0])[0] == asked.ids[0], "a chunk has one id, found or given again"


def test_a_changed_passage_does_not_come_back(knowledge: KnowledgeBase, folder: Path):
    asked = Asked(knowledge, "Five percent.", "Yes.")
    (folder / "pension.md").write_text(PENSION.replace("five", "nine"))
    knowledge.ingest(folder / "pension.md", tenant="acme")
    answer = asked.ask("And what does the second one say?")
    _, pension = asked.ids
    assert "Sick leave lasts ten days" in asked.prompt[-1].text
    assert "percent" not in asked.prompt[-1].text
    assert f'<evidence id="{pension}" note="{STALE_NOTE}">' in asked.prompt[-1].text
    (warning,) = answer.outcome["warnings"]
    assert pension in warning and "stale" in warning


def test_a_deleted_document_does_not_come_back(knowledge: KnowledgeBase):
    asked = Asked(knowledge, lambda messages, tools: f"Five percent [{asked.ids[1]}].")
    (gone,) = [document for document in knowledge.documents(Scope.of(ACME)) if "pension" in document.source]
    knowledge.delete(gone.id, Scope.of(ACME))
    answer = asked.ask("And the second?")
    assert answer.citations == ()
    assert len([warning for warning in answer.outcome["warnings"] if asked.ids[1] in warning]) == 2


def test_what_is_no_longer_allowed_does_not_come_back(knowledge: KnowledgeBase):
    asked = Asked(knowledge, "No idea.")
    answer = asked.ask("And the first?", principal=Principal(tenant="acme"))
    assert "ten days a year" not in asked.prompt[-1].text
    assert "five percent of the salary" in asked.prompt[-1].text
    assert [asked.ids[0] in warning for warning in answer.outcome["warnings"]] == [True]


def test_another_tenant_gets_nothing_of_a_thread_that_it_is_handed(knowledge: KnowledgeBase):
    """A raw graph takes whatever history a client sends: forged places read nothing that the scope doesn't hold."""
    asked = Asked(knowledge)
    stolen = asked.agent.history("t", principal=ACME)
    with ScriptedChatModel("Nothing.") as model:
        graph = build_rag_graph(model=model, knowledge=knowledge)
        out = graph.invoke({"messages": [*stolen, HumanMessage("And the second?")]})
    assert "percent of the salary" not in str(model.requests[0].messages)
    assert len(out["outcome"]["warnings"]) == 2


@pytest.mark.parametrize(
    "forged",
    [
        "no list",
        [None, 3, "x", {}],
        [{"id": 'x"><evidence'}],
        [{"id": "k3f2a", "chunk_id": "of another", "digest": "0"}],
        {"a": 1},
    ],
)
def test_a_forged_citation_in_the_history_is_passed_over(knowledge: KnowledgeBase, forged: Any):
    history = [HumanMessage("q"), AIMessage("a", response_metadata={"citations": forged}), HumanMessage("And?")]
    with ScriptedChatModel("Nothing.") as model:
        out = build_rag_graph(model=model, knowledge=knowledge).invoke({"messages": history})
    assert (model.requests[0].messages[-1].text, out["outcome"]["warnings"]) == ("And?", [])


def test_a_request_that_looks_elsewhere_gets_none_and_marks_none(knowledge: KnowledgeBase):
    asked = Asked(knowledge, "Elsewhere.")
    answer = asked.ask("And the second?", collections=("other",))
    assert (asked.prompt[-1].text, answer.outcome["warnings"]) == ("And the second?", [])


@pytest.mark.parametrize(
    "context", [{"max_recalled_tokens": 0}, {"retrieval": "none"}, {"tools": ()}], ids=["off", "no search", "no tools"]
)
def test_where_it_is_off_the_question_stands_alone(knowledge: KnowledgeBase, context: Any):
    asked = Asked(knowledge, "Fine.")
    asked.ask("And the second?", **context)
    assert asked.prompt[-1].text == "And the second?"


def test_no_more_comes_back_than_its_tokens(knowledge: KnowledgeBase):
    asked = Asked(knowledge, "Fine.", max_recalled_tokens=40)
    asked.ask("And the second?")
    assert len(shown_ids(asked.prompt[-1].text)) == 1


def test_what_comes_back_leaves_room_for_a_search(tmp_path: Path):
    for name in ("sick leave", "parental leave", "study leave"):
        remarks = " ".join(
            f"Remark {number} is about the paper of item {number}, which is kept." for number in range(24)
        )
        (tmp_path / f"{name}.md").write_text(f"# {name}\n\nThe {name} of the staff is ten days a year. {remarks}")
    (tmp_path / "gateway.md").write_text("# Gateway\n\nThe warranty of the gateway is 36 months.\n")
    with KnowledgeBase.open(":memory:", embedder="none") as kb:
        kb.ingest([tmp_path])
        agent = RagAgent(model="offline", knowledge=kb, budget=Budget(max_evidence_tokens=700))
        first = agent.ask("How long is the sick leave? How long is the parental leave? How long is the study leave?")
        second = agent.ask("What is the warranty of the gateway?", thread=first.thread)
    assert second.outcome["calls"]["run"] == 1
    assert second.text.startswith("The warranty of the gateway is 36 months.")


def test_a_knowledge_base_that_fails_costs_the_turn_nothing(knowledge: KnowledgeBase, monkeypatch: pytest.MonkeyPatch):
    asked = Asked(knowledge, "Fine.")

    async def broken(*args: Any, **kwargs: Any) -> Any:
        raise KnowledgeBaseError("the disk is gone")

    monkeypatch.setattr(knowledge, "aread", broken)
    answer = asked.ask("And the second?")
    assert (answer.text, answer.outcome["warnings"], asked.prompt[-1].text) == ("Fine.", [], "And the second?")


def test_a_model_that_gets_one_search_sees_it_too(knowledge: KnowledgeBase):
    asked = Asked(knowledge, "Fine.")
    asked.ask("Something about nothing at all?", retrieval="one_shot")
    assert set(shown_ids(asked.prompt[0].text)) == set(asked.ids)


def test_a_model_that_fails_quotes_nothing_that_the_turn_did_not_find(knowledge: KnowledgeBase):
    asked = Asked(knowledge, ConnectionError("reset"), ConnectionError("reset"))
    answer = asked.ask("Weather tomorrow?")
    assert (answer.outcome["ending"], answer.citations) == ("model_error", ())


def test_no_text_of_it_stays_in_the_thread(knowledge: KnowledgeBase):
    saver = InMemorySaver()
    asked = Asked(knowledge, cite_all, saver=saver)
    asked.ask("And the second?")
    kept = str(list(saver.list(None)))
    assert "percent of the salary" not in kept


def test_the_offline_model_follows_up_on_what_was_cited(knowledge: KnowledgeBase):
    agent = RagAgent(model="offline", knowledge=knowledge)
    first = agent.ask("How long is sick leave?", thread="t", principal=ACME)
    second = agent.ask("And how many days a year does it last?", thread="t", principal=ACME)
    assert [citation.id for citation in second.citations] == [citation.id for citation in first.citations]
    assert "ten days" in second.text
    other = agent.ask("What does the pension plan pay?", thread="t", principal=ACME)
    assert "five percent" in other.text
    assert "Sick leave" not in other.text


def sized(tokens: int) -> ScriptedChatModel:
    return ScriptedChatModel("one", "two", profile={"tool_calling": True, "max_input_tokens": tokens})


def test_a_question_that_does_not_fit_is_refused_by_its_size_and_the_thread_goes_on():
    agent = RagAgent(model=(model := sized(4_000)), knowledge=CannedKnowledge())
    agent.ask("first", thread="t")
    huge = "why " * 10_000
    with pytest.raises(QuestionTooLongError, match=f"about {estimate_tokens(huge.strip())} tokens") as caught:
        agent.ask(huge.strip(), thread="t")
    assert "MAX_PROMPT_TOKENS" in str(caught.value)
    agent.ask("second", thread="t")
    assert [message.text for message in model.requests[1].messages[1:]] == ["first", "one", "second"]


def test_a_question_within_the_window_is_asked_whole():
    agent = RagAgent(model=(model := sized(4_000)), knowledge=CannedKnowledge())
    agent.ask("first " * 500, thread="t")
    agent.ask("second " * 900, thread="t")
    assert model.requests[1].messages[-1].text == "second " * 900
    assert sum(map(tokens_of, model.requests[1].messages)) <= 3_500


def test_a_summary_by_the_model_is_written_now_and_then_and_kept(folder: Path):
    def play(messages: list[BaseMessage], tools: Any) -> str:
        if "sum up" in messages[0].text:
            written.append(messages[1].text)
            return f"<think>hm</think>Summary {len(written)} [k3f2a]."
        prompts.append(messages)
        return "word " * 60

    written: list[str] = []
    prompts: list[list[BaseMessage]] = []
    model = ScriptedChatModel(*[play] * 200)
    budget = Budget(max_history_tokens=800, history_summary="model")
    agent = RagAgent(model=model, knowledge=CannedKnowledge(), budget=budget)
    texts = [agent.ask(f"question {number}", thread="t").text for number in range(40)]
    assert set(texts) == {"word " * 60}
    assert 3 <= len(written) <= 15
    assert "Summary so far: (none)" in written[0] and "question 0" in written[0]
    assert "Summary so far: Summary 1." in written[1] and "question 0\n" not in written[1]
    assert f"Summary {len(written)}." in prompts[-1][2].text
    assert len(agent.history("t")) == 80


def test_a_summary_that_fails_leaves_a_line_a_turn():
    def play(messages: list[BaseMessage], tools: Any) -> Any:
        return ConnectionError("reset") if "sum up" in messages[0].text else "Because. " + "word " * 60

    budget = Budget(max_history_tokens=800, history_summary="model")
    agent = RagAgent(model=(model := ScriptedChatModel(*[play] * 99)), knowledge=CannedKnowledge(), budget=budget)
    for number in range(20):
        answer = agent.ask(f"question {number}", thread="t")
    assert answer.outcome["ending"] == "answered"
    assert "-> Because." in model.requests[-1].messages[2].text


def test_an_edit_before_the_summary_goes_on_without_it():
    def play(messages: list[BaseMessage], tools: Any) -> str:
        return "A secret summary." if "sum up" in messages[0].text else "word " * 60

    budget = Budget(max_history_tokens=800, history_summary="model")
    agent = RagAgent(model=(model := ScriptedChatModel(*[play] * 99)), knowledge=CannedKnowledge(), budget=budget)
    for number in range(20):
        agent.ask(f"question {number}", thread="t")
    assert "A secret summary." in str(model.requests[-1].messages)
    second = agent.history("t")[2]
    agent.edit(str(second.id), "another question", thread="t")
    assert [message.text[:16] for message in model.requests[-1].messages[1:]] == [
        "question 0",
        "word word word w",
        "another question",
    ]


def test_turn_one_thousand_is_shown_no_more_than_turn_one_hundred():
    """Prompt and CPU of a turn are bounded by the window; what still grows is reading the thread (2,000 messages)."""

    def play(messages: list[BaseMessage], tools: Any) -> Any:
        sizes.append(sum(map(tokens_of, messages)))
        return "Fact. " + "word " * 40

    async def talk() -> list[float]:
        spent = []
        for number in range(turns):
            began = time.process_time()
            await agent.aask(f"question {number}", thread="t")
            spent.append(time.process_time() - began)
        return spent

    sizes: list[int] = []
    turns = 1_000
    model = ScriptedChatModel(*[play] * turns)
    agent = RagAgent(model=model, knowledge=CannedKnowledge(), budget=Budget(max_history_tokens=2_000))
    seconds = asyncio.run(talk())
    assert max(sizes[100:]) <= 1.02 * max(sizes[50:100])
    early, late = statistics.median(seconds[50:150]), statistics.median(seconds[-100:])
    assert late <= 3.5 * early, (early, late)
    assert len(agent.history("t")) == 2 * turns
