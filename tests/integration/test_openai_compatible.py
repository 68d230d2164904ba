"""The whole graph with a model behind real HTTP, streaming and not."""

from typing import Any

import pytest

from graphrag_agent import RagAgent
from graphrag_agent.events import TextDelta
from graphrag_agent.models.factory import load_chat_model
from tests.canned import CannedKnowledge, id_of
from tests.fake_openai import FakeOpenAI, HTTPFailure, tool_message

CITED = id_of("All about sick leave.")
STEPS = (
    tool_message(("knowledge_search", {"query": "sick leave"}), ("knowledge_search", {"query": " Sick  leave"})),
    f"Ten days [{CITED}].",
)


def agent(server: FakeOpenAI, knowledge: CannedKnowledge, **options: Any) -> RagAgent:
    return RagAgent(model=load_chat_model("openai:local", base_url=server.base_url, **options), knowledge=knowledge)


@pytest.mark.parametrize("streaming", [True, False])
def test_a_turn_over_http(streaming: bool):
    knowledge = CannedKnowledge()
    with FakeOpenAI(*STEPS) as server:
        answer = agent(server, knowledge, streaming=streaming).ask("How long is sick leave?")
    assert (answer.text, [citation.id for citation in answer.citations]) == (f"Ten days [{CITED}].", [CITED])
    assert knowledge.queries == ["sick leave"]
    assert [body.get("stream", False) for body in server.bodies] == [streaming, streaming]
    assert answer.outcome["tokens"] == {"input": 22, "output": 10}
    first, second = server.bodies
    assert [tool["function"]["name"] for tool in first["tools"]] == ["knowledge_search"]
    properties = first["tools"][0]["function"]["parameters"]["properties"]
    assert sorted(properties) == ["document_ids", "query", "source_type", "top_k"], "nothing of the scope is offered"
    assert [message["role"] for message in second["messages"]] == ["system", "user", "assistant", "tool", "tool"]


def test_text_streams_while_it_is_written():
    long = f"{'Ten days a year. ' * 40}[{CITED}]"
    with FakeOpenAI(STEPS[0], long) as server:
        events = list(agent(server, CannedKnowledge()).stream("How long is sick leave?"))
    deltas = [event.text for event in events if isinstance(event, TextDelta)]
    assert len(deltas) > 3
    assert "".join(deltas) == long


def test_a_provider_that_refuses_ends_the_turn_with_what_was_found(caplog: pytest.LogCaptureFixture):
    with FakeOpenAI(STEPS[0], HTTPFailure(400, "context too long")) as server:
        answer = agent(server, CannedKnowledge(), max_retries=0).ask("How long is sick leave?")
    assert answer.outcome["ending"] == "model_error"
    assert [citation.id for citation in answer.citations] == [CITED]
    assert "context too long" in caplog.text
