"""Tools that are made for the request's scope."""

from typing import Any

from langchain_core.tools import tool

from graphrag_agent import Principal, RagAgent, Scope, ToolSpec
from graphrag_agent.testing import ScriptedChatModel, call
from graphrag_agent.tools.run_python import build_run_python
from tests.canned import CannedKnowledge


@tool
def catalogue(word: str) -> str:
    """Look a word up."""
    raise AssertionError("only the face")


def test_a_placeholder_is_bound_to_each_scope_once_and_never_shared():
    made: list[Scope] = []

    def bind(scope: Scope) -> Any:
        made.append(scope)

        @tool("catalogue")
        def bound(word: str) -> str:
            """Look a word up."""
            return f"{word} for {scope.tenant}"

        return bound

    spec = ToolSpec(catalogue, bind=bind, side_effect_free=True)
    steps = [call("catalogue", word="a"), "done"] * 3
    with ScriptedChatModel(*steps) as model:
        agent = RagAgent(model=model, tools=[spec])
        for tenant in ("acme", "globex", "acme"):
            agent.ask("q", principal=Principal(tenant=tenant))
    seen = [request.messages[-1].text.partition("\n")[0] for request in model.requests[1::2]]
    assert seen == ["a for acme", "a for globex", "a for acme"]
    assert [scope.tenant for scope in made] == ["acme", "globex"]


def test_tools_that_differ_in_their_description_alone_are_not_mixed_up():
    """A model bound for one client must not be another's."""

    class Binding(ScriptedChatModel):
        def bind_tools(self, tools: Any, **options: Any) -> Any:
            told.append([tool.description for tool in tools if tool.name == "panel"])
            return super().bind_tools(tools, **options)

    told: list[list[str]] = []
    rag = RagAgent(model=Binding("a", "b"))
    for description in ("Ann's panel", "Bob's panel"):
        panel = {"name": "panel", "description": description, "parameters": {"type": "object", "properties": {}}}
        rag.ask("q", context={"client_tools": [panel]})
    assert told == [["Ann's panel"], ["Bob's panel"]]


def test_what_a_request_says_of_searches_holds_for_those_that_code_makes():
    code = "len(search('leave', top_k=9))"
    with ScriptedChatModel(*[call("run_python", code=code), "done"] * 3) as model:
        knowledge = CannedKnowledge(lambda query: [f"{query} {number}" for number in range(9)])
        agent = RagAgent(model=model, knowledge=knowledge, tools=[build_run_python(knowledge=knowledge)])
        for context in ({}, {"top_k": 2}, {"tools": ["run_python"]}):
            agent.ask("q", context=context)
    results = [request.messages[-1].text for request in model.requests[1::2]]
    assert ["Result:\n9" in results[0], "Result:\n2" in results[1]] == [True, True]
    assert "this request may not search" in results[2]
    assert knowledge.top_ks == [9, 2]
