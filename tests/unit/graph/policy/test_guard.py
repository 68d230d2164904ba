"""The verdict on each call of a round."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import BaseMessage, ToolMessage
from langchain_core.tools import tool

from graphrag_agent.graph.policy.guard import Verdict, fingerprint, judge_calls
from graphrag_agent.graph.policy.pairing import error_message, tool_message
from graphrag_agent.tools.knowledge_search import build_knowledge_search
from graphrag_agent.tools.registry import ToolRegistry
from tests.canned import CannedKnowledge


@tool
def run_code(code: str) -> str:
    """Run code."""
    return code


TOOLS = ToolRegistry([build_knowledge_search(CannedKnowledge()), run_code])
SEARCH = TOOLS["knowledge_search"]


def search(id_: str = "1", **arguments: Any) -> dict[str, Any]:
    return {"name": "knowledge_search", "args": arguments, "id": id_, "type": "tool_call"}


def judge(
    *calls: dict[str, Any],
    turn: tuple[BaseMessage, ...] = (),
    ledger: dict[str, str] | None = None,
    calls_left: int = 10,
    scope_key: str = "tenant=a",
) -> list[Verdict]:
    return judge_calls(calls, TOOLS, turn=turn, ledger=ledger or {}, calls_left=calls_left, scope_key=scope_key)


def mark(scope_key: str = "tenant=a", **arguments: Any) -> str:
    return fingerprint(SEARCH, SEARCH.validate(arguments), scope_key)


@pytest.mark.parametrize(
    "arguments",
    [
        {"query": "sick leave", "top_k": 5},
        {"top_k": 5, "query": "sick leave"},
        {"query": "  Sick   LEAVE "},
        {"query": "ｓick leave"},
        {"query": "sick leave", "document_ids": None},
    ],
    ids=["default given", "keys reordered", "blanks and case", "unicode form", "null default"],
)
def test_a_call_that_means_the_same_is_a_duplicate_in_its_batch(arguments: dict[str, Any]):
    verdicts = judge(search("1", query="sick leave"), search("2", **arguments))
    assert [verdict.kind for verdict in verdicts] == ["run", "duplicate"]
    assert "same call as 1" in verdicts[1].message


@pytest.mark.parametrize("arguments", [{"query": "sick"}, {"query": "sick leave", "source_type": "pdf"}])
def test_a_call_that_asks_for_something_else_runs(arguments: dict[str, Any]):
    assert [v.kind for v in judge(search("1", query="sick leave"), search("2", **arguments))] == ["run", "run"]


def test_a_call_that_succeeded_before_is_reused():
    turn = (tool_message(search("1", query="a"), "found"),)
    (verdict,) = judge(search("2", query="A"), turn=turn, ledger={mark(query="a"): "1"})
    assert (verdict.kind, verdict.message) == ("reuse", "same call as 1 earlier in this turn; read its result")


@pytest.mark.parametrize(("retryable", "kind"), [(True, "run"), (False, "reuse")])
def test_a_call_that_failed_runs_again_only_when_that_can_help(retryable: bool, kind: str):
    turn = (error_message(search("1", query="a"), "timeout", "too slow", retryable=retryable),)
    assert judge(search("2", query="a"), turn=turn, ledger={mark(query="a"): "1"})[0].kind == kind


def test_the_same_words_under_another_scope_are_another_call():
    turn = (ToolMessage("found", tool_call_id="1"),)
    assert judge(search("2", query="a"), turn=turn, ledger={mark("tenant=b", query="a"): "1"})[0].kind == "run"


def test_case_and_blanks_mean_something_outside_a_search():
    code = [{"name": "run_code", "args": {"code": text}, "id": text} for text in ("x = 1", "X = 1", "x  = 1")]
    assert [verdict.kind for verdict in judge(*code)] == ["run", "run", "run"]


def test_an_unknown_tool_is_refused_with_the_list_of_real_ones():
    (verdict,) = judge({"name": "web", "args": {}, "id": "1"})
    assert (verdict.kind, verdict.error) == ("refuse", "unknown_tool")
    assert verdict.message == "there is no tool 'web'; tools: knowledge_search, run_code"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"query": "a", "tenant": "b"}, "tenant: unknown argument"),
        ({"query": "a", "scope": "all"}, "scope: unknown argument"),
        ({}, "query: Field required"),
        ({"query": None}, "query: Input should be a valid string"),
        ({"query": ["x"]}, "query: Input should be a valid string"),
        ({"QUERY": "x"}, "QUERY: unknown argument"),
        ({"query": ""}, "query: String should have at least 1 character"),
        ({"query": "a", "top_k": 21}, "top_k: Input should be less than or equal to 20"),
        (7, "arguments must be a JSON object, not int"),
        (None, "arguments must be a JSON object, not NoneType"),
        ([], "arguments must be a JSON object, not list"),
    ],
)
def test_bad_arguments_are_refused_with_what_is_wrong(arguments: Any, told: str):
    bad = {"name": "knowledge_search", "args": arguments, "id": "1"}
    refused, good = judge(bad, search("2", query="a"))
    assert (refused.kind, refused.error, good.kind) == ("refuse", "bad_arguments", "run")
    assert told in refused.message


def test_text_that_is_no_json_is_refused():
    call = {"name": "knowledge_search", "args": '{"query": "a', "id": "1", "type": "invalid_tool_call"}
    assert judge(call)[0].message == "the arguments are not valid JSON; send them again"


def test_a_batch_that_overshoots_runs_what_fits():
    verdicts = judge(*(search(str(n), query=str(n)) for n in range(4)), calls_left=2)
    assert [verdict.kind for verdict in verdicts] == ["run", "run", "refuse", "refuse"]
    assert verdicts[2].error == "budget"


any_call = st.builds(
    lambda name, args, id_: {"name": name, "args": args, "id": id_},
    st.sampled_from(["knowledge_search", "run_code", "nope", ""]),
    st.one_of(
        st.none(),
        st.text(max_size=5),
        st.dictionaries(
            st.sampled_from(["query", "code", "top_k", "tenant"]),
            st.one_of(st.none(), st.text(max_size=3), st.integers()),
        ),
    ),
    st.text("abc", min_size=1, max_size=3),
)


@given(st.lists(any_call, max_size=6), st.integers(0, 4))
def test_every_call_gets_one_verdict_and_never_more_run_than_are_left(calls: list[dict[str, Any]], left: int):
    verdicts = judge(*calls, calls_left=left)
    assert [verdict.call for verdict in verdicts] == calls
    assert sum(verdict.kind == "run" for verdict in verdicts) <= left
    assert verdicts == judge(*calls, calls_left=left)
    assert all(verdict.message for verdict in verdicts if verdict.kind != "run")
