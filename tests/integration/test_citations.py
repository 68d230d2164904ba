"""Citations of whole turns: what is asked for once more, what stays of marks, what a thread keeps of them."""

import json
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver

from graphrag_agent import Budget, RagAgent, build_rag_graph
from graphrag_agent.context import AgentContext
from graphrag_agent.events import AnswerReady, TextDelta
from graphrag_agent.testing import ScriptedChatModel, call
from tests.canned import CannedKnowledge, id_of

FACT = "Sick leave lasts ten days a year."
CITED = id_of(FACT)
ASK = {"messages": [{"role": "user", "content": "How long is sick leave?"}]}
SEARCH = call("knowledge_search", query="sick leave")
UNCITED, GOOD = "Sick leave lasts ten days a year.", f"Sick leave lasts ten days a year [{CITED}]."
WARNING = "uncited: the answer names no source, though evidence was found"


def knowledge(*facts: str) -> CannedKnowledge:
    return CannedKnowledge(lambda query: list(facts or (FACT,)))


def ask(*script: Any, context: AgentContext | None = None, **budget: Any) -> tuple[dict[str, Any], ScriptedChatModel]:
    with ScriptedChatModel(*script) as model:
        graph = build_rag_graph(model=model, knowledge=knowledge(), budget=Budget(**budget))
        return graph.invoke(ASK, context=context or AgentContext()), model


def test_an_answer_that_names_no_evidence_is_asked_for_once_more():
    out, model = ask(SEARCH, UNCITED, GOOD)
    assert out["messages"][-1].text == GOOD
    assert out["outcome"]["warnings"] == []
    assert out["outcome"]["rounds"] == 3
    again = model.requests[2]
    assert again.tools == ()
    assert "named no evidence" in again.messages[0].text
    assert UNCITED not in [message.text for message in again.messages]
    assert FACT in again.messages[-1].text


def test_only_once_and_then_it_is_recorded():
    out, _ = ask(SEARCH, UNCITED, "Ten days a year, as sick leave lasts.")
    assert out["messages"][-1].text == UNCITED, "the other answer is no better"
    assert out["outcome"]["warnings"] == [WARNING]


@pytest.mark.parametrize("second", [RuntimeError("down"), "", call("knowledge_search", query="more")])
def test_what_goes_wrong_then_changes_nothing(second: Any):
    out, _ = ask(SEARCH, UNCITED, second)
    assert (out["messages"][-1].text, out["outcome"]["ending"]) == (UNCITED, "answered")
    assert out["outcome"]["calls"]["run"] == 1


def test_an_invented_id_is_no_citation():
    out, _ = ask(SEARCH, f"{UNCITED} [z9z9z]", GOOD)
    assert (out["messages"][-1].text, out["outcome"]["warnings"]) == (GOOD, [])


@pytest.mark.parametrize(
    ("answer", "options"),
    [
        ("Nothing about that was found.", {}),
        (UNCITED, {"citation_policy": "record"}),
        (UNCITED, {"max_rounds": 2}),
    ],
)
def test_it_is_not_asked_for_where_there_is_nothing_to_name_or_no_round_left(answer: str, options: dict[str, Any]):
    out, _ = ask(SEARCH, answer, **options)
    assert (out["messages"][-1].text, out["outcome"]["warnings"]) == (answer, [WARNING])


def test_off_says_nothing():
    out, _ = ask(SEARCH, UNCITED, citation_policy="off")
    assert out["outcome"]["warnings"] == []


def test_without_evidence_no_citation_is_missed():
    out, _ = ask("Hello.", context=AgentContext(retrieval="none"))
    assert out["outcome"]["warnings"] == []


def test_one_shot_is_asked_once_more_too():
    out, _ = ask(UNCITED, GOOD, context=AgentContext(retrieval="one_shot"))
    assert out["messages"][-1].text == GOOD


def test_tokens_of_both_answers_are_counted():
    usage = {"input_tokens": 10, "output_tokens": 3, "total_tokens": 13}
    out, _ = ask(*(AIMessage(text, usage_metadata=usage) for text in (UNCITED, GOOD)), context=ONE_SHOT)
    assert out["outcome"]["tokens"] == {"input": 20, "output": 6}


ONE_SHOT = AgentContext(retrieval="one_shot")


def test_the_second_answer_is_not_streamed_but_comes_whole():
    events = list(RagAgent(model=ScriptedChatModel(SEARCH, UNCITED, GOOD), knowledge=knowledge()).stream("q"))
    shown = "".join(event.text for event in events if isinstance(event, TextDelta))
    (ready,) = [event for event in events if isinstance(event, AnswerReady)]
    assert (shown, ready.text) == (UNCITED, GOOD)
    assert ready.message_id not in {event.message_id for event in events if isinstance(event, TextDelta)}


def test_the_offline_model_cites_what_it_quotes_and_is_not_asked_again():
    answer = RagAgent(model="offline", knowledge=knowledge()).ask("How long does sick leave last?")
    assert (answer.outcome["rounds"], answer.outcome["warnings"]) == (2, [])
    assert answer.outcome["check"]["citations"] == {CITED: "supported"}


@pytest.mark.parametrize(
    ("answer", "cited"),
    [
        (f"{FACT} `[{CITED}]`", [CITED]),
        (f"{FACT} 【{CITED.upper()}】", [CITED]),
        (f"Ten [{CITED}]. Days [{CITED}]. A [{CITED}]. Year [{CITED}]. So [{CITED}].", [CITED]),
        (f"```\n[{CITED}]\n```", []),
        (f"See [{CITED}](https://example.org) and [1] of [Company].", []),
    ],
)
def test_marks_in_all_forms_and_what_is_none(answer: str, cited: list[str]):
    out, _ = ask(SEARCH, answer, citation_policy="record")
    assert out["outcome"]["citations"] == cited
    assert out["outcome"]["warnings"] == ([] if cited else [WARNING])


def test_forty_sources():
    facts = [f"Rule {at} says that form {at} is kept for {at} days." for at in range(40)]
    ids = [id_of(fact) for fact in facts]
    kb = CannedKnowledge(lambda query: facts[int(query) : int(query) + 20])
    model = ScriptedChatModel(
        [call("knowledge_search", query=query, top_k=20) for query in ("0", "20")],
        " ".join(f"{fact} [{id_}]" for fact, id_ in zip(facts, ids, strict=True)),
    )
    answer = RagAgent(model=model, knowledge=kb).ask("q")
    assert len(answer.citations) == 40
    assert answer.outcome["check"]["supported"] == 40
    assert answer.outcome["warnings"] == []


def test_an_id_of_an_earlier_turn_or_of_another_tenant_stands_for_nothing():
    foreign = id_of("Another tenant's fact.")
    model = ScriptedChatModel(SEARCH, GOOD, "Hello.", f"So [{CITED}] and [{foreign}].")
    agent = RagAgent(model=model, knowledge=knowledge(), budget=Budget(max_recalled_tokens=0))
    thread = agent.ask("q").thread
    agent.ask("q", thread=thread)
    told = agent.ask("q", thread=thread)
    assert (told.text, told.citations) == ("So and.", ())
    assert told.outcome["warnings"] == [f"unknown citation {id_!r} was removed" for id_ in (CITED, foreign)]


def test_sources_that_disagree_are_named_in_the_warnings():
    other = "Sick leave lasts twelve days a year."
    model = ScriptedChatModel(SEARCH, f"Sick leave lasts ten days a year [{CITED}].")
    kb = knowledge(FACT, other)
    answer = RagAgent(model=model, knowledge=kb).ask("q")
    assert answer.outcome["warnings"] == [], "only what is cited counts"
    model = ScriptedChatModel(SEARCH, f"It lasts ten days a year [{CITED}], or twelve days [{id_of(other)}].")
    (note,) = RagAgent(model=model, knowledge=kb).ask("q").outcome["warnings"]
    assert note == f"sources [{CITED}] and [{id_of(other)}] differ: 'ten days' and 'twelve days'"


def test_a_thread_keeps_annotations_and_places_but_no_text_of_a_source():
    secret = "The vault opens with the word zanzibar. Sick leave lasts ten days a year, and not one more."
    saver = InMemorySaver()
    model = ScriptedChatModel(SEARCH, f"Sick leave lasts eleven days a year [{id_of(secret)}].", "Bye.")
    agent = RagAgent(model=model, knowledge=knowledge(secret), checkpointer=saver)
    answer = agent.ask("q")
    assert "zanzibar" in answer.citations[0].text
    assert answer.citations[0].quotes[0].text == "Sick leave lasts ten days a year, and not one more."
    message = agent.history(answer.thread)[-1]
    assert message.text == answer.text
    (block,) = message.content_blocks
    (annotation,) = block["annotations"]  # type: ignore[typeddict-item]
    assert (annotation["start_index"], annotation["end_index"]) == (0, len(answer.text))
    assert annotation["extras"] == {"id": id_of(secret), "number": 1}
    kept = json.dumps([message.content, message.response_metadata])
    assert not {"zanzibar", "ten days", "one more"} & {
        word for word in ("zanzibar", "ten days", "one more") if word in kept
    }
    assert answer.outcome["check"]["doubts"][0]["support"] == "unsupported"
    agent.ask("q2", thread=answer.thread)
    assert all(isinstance(m.content, str) for m in model.requests[-1].messages), "a model is shown plain text"


def test_a_check_that_fails_costs_no_answer(monkeypatch: pytest.MonkeyPatch):
    from graphrag_agent.graph.nodes import commit_answer as node

    def fail(*given: Any) -> Any:
        raise ValueError("no")

    monkeypatch.setattr(node, "check_answer", fail)
    out, _ = ask(SEARCH, GOOD)
    assert (out["messages"][-1].text, out["outcome"]["citations"]) == (GOOD, [CITED])
    assert "check" not in out["outcome"]


def test_renderings_of_an_answer():
    answer = RagAgent(model=ScriptedChatModel(SEARCH, GOOD), knowledge=knowledge()).ask("q")
    note = f"Leave (leave.md), Policy: “{FACT}”"
    assert answer.as_footnotes() == f"Sick leave lasts ten days a year [^1].\n\n[^1]: {note}"
    assert answer.as_plain() == f"Sick leave lasts ten days a year [1].\n\nSources:\n1. {note}"
    assert answer.text == GOOD
