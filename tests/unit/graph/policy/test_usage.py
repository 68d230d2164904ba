"""What tools spent inside their calls is counted once, and only what is a count."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage

from graphrag_agent.graph.policy.budget import Spent
from graphrag_agent.graph.policy.usage import newest_results, usage_of


def result(artifact: Any, id_: str = "1") -> ToolMessage:
    return ToolMessage("done", tool_call_id=id_, artifact=artifact)


def test_tokens_and_nested_calls_add_up_over_the_results():
    results = [
        result({"usage": {"input_tokens": 10, "output_tokens": 3, "tool_calls": 2}}),
        result({"usage": {"input_tokens": 5, "output_tokens": 1}, "hits": []}),
        result({"hits": []}),
        AIMessage("hm"),
    ]
    assert usage_of(results) == {"input_tokens": 15, "output_tokens": 4, "run": 2}
    assert Spent(run=1).plus(**usage_of(results)) == Spent(run=3, input_tokens=15, output_tokens=4)


@pytest.mark.parametrize(
    "artifact",
    [None, "usage", ["usage"], {"usage": 7}, {"usage": {"input_tokens": "9"}}, {"usage": {"tool_calls": -3}}],
)
def test_a_users_artifact_of_another_shape_counts_nothing(artifact: Any):
    assert usage_of([result(artifact)]) == {}


def test_only_results_behind_the_last_model_message_are_new():
    old, new = result({}, "1"), result({}, "2")
    assert newest_results([AIMessage(""), old, AIMessage(""), new]) == [new]
    assert newest_results([AIMessage(""), old, AIMessage("")]) == []
    assert newest_results([old]) == [old]
