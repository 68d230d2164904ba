"""A figure that the model computed is cited in the answer like a passage."""

from __future__ import annotations

from langchain_core.messages import HumanMessage

from graphrag_agent.assembly import build_rag_graph
from graphrag_agent.documents import short_id
from graphrag_agent.testing import ScriptedChatModel, call
from graphrag_agent.tools.run_python import build_run_python
from tests.canned import CannedKnowledge

CODE = """days = [int(hit['text'].split()[2]) for hit in search('leave') + search('sick leave')]
print('Leave and sick leave together:', sum(days), 'days')"""


async def test_a_computed_figure_and_the_passages_behind_it_are_cited() -> None:
    knowledge = CannedKnowledge(lambda query: [f"{query.split()[0].title()} takes {len(query)} days off."])

    def answer(messages: list, names: tuple[str, ...]) -> str:  # type: ignore[type-arg]
        text = messages[-1].text
        assert "Printed:\nLeave and sick leave together: 15 days" in text
        ids = [part.partition('"')[0] for part in text.split('<evidence id="')[1:]]
        assert len(ids) == 3
        return f"Leave and sick leave together are 15 days [{ids[0]}]. Leave takes 5 days off [{ids[1]}]."

    with ScriptedChatModel(call("run_python", code=CODE), answer) as model:
        graph = build_rag_graph(model=model, knowledge=knowledge, tools=[build_run_python(knowledge=knowledge)])
        state = await graph.ainvoke({"messages": [HumanMessage("How many days are leave and sick leave together?")]})
    assert state["outcome"]["ending"] == "answered"
    assert state["outcome"]["check"]["supported"] == 2
    computed, passage = state["messages"][-1].response_metadata["citations"]
    assert (computed["source"], computed["title"], computed["document_id"]) == ("computed", "Python", "")
    assert computed["chunk_id"].startswith("python:") and computed["id"] == short_id(computed["chunk_id"])
    assert passage["source"] == "leave.md"


async def test_code_that_fails_is_mended_in_the_next_round() -> None:
    def look(messages: list, names: tuple[str, ...]) -> dict:  # type: ignore[type-arg]
        assert "ZeroDivisionError" in messages[-1].text and "line 1" in messages[-1].text
        return call("run_python", code="6 / 2")  # type: ignore[return-value]

    with ScriptedChatModel(call("run_python", code="6 / 0"), look, "It is 3.0 [id].") as model:
        graph = build_rag_graph(model=model, tools=[build_run_python()])
        state = await graph.ainvoke({"messages": [HumanMessage("What is 6 by 2?")]})
    assert state["outcome"]["calls"]["run"] == 2
