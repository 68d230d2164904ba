"""The verdict on each call of a round."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import tool

from graphrag_agent.citations import Evidence
from graphrag_agent.graph.policy.fingerprints import call_mark
from graphrag_agent.graph.policy.guard import GuardRules, Verdict, judge_calls
from graphrag_agent.graph.policy.pairing import error_message, tool_message
from graphrag_agent.tools.evidence_message import render_evidence
from graphrag_agent.tools.knowledge_search import build_knowledge_search
from graphrag_agent.tools.registry import ToolRegistry
from graphrag_agent.tools.spec import client_tool
from tests.canned import CannedKnowledge


@tool
def run_code(code: str) -> str:
    """Run code."""
    return code


TOOLS = ToolRegistry([build_knowledge_search(CannedKnowledge()), run_code])
SEARCH = TOOLS["knowledge_search"]


def search(id_: str = "1", **arguments: Any) -> dict[str, Any]:
    return {"name": "knowledge_search", "args": arguments, "id": id_, "type": "tool_call"}


def judge(*calls: dict[str, Any], **rules: Any) -> list[Verdict]:
    return judge_calls(calls, GuardRules(**{"tools": TOOLS, "calls_left": 10, "scope_key": "tenant=a", **rules}))


def mark(scope_key: str = "tenant=a", **arguments: Any) -> str:
    return call_mark(SEARCH, SEARCH.validate(arguments), scope_key)


def searched(query: str, *, found: int, top_k: int = 5) -> dict[str, Any]:
    """A turn in which this was searched for, and its ledger."""
    asked = AIMessage("", tool_calls=[search("1", query=query, top_k=top_k)])
    hits = [evidence(f"h{n}") for n in range(found)]
    text, artifact = render_evidence(hits)
    turn = (asked, tool_message(search("1"), text, artifact))
    return {"turn": turn, "ledger": {mark(query=query, top_k=top_k): "1"}}


def evidence(id_: str) -> Evidence:
    return Evidence(id_, f"chunk-{id_}", "d", "T", "t.md", None, "", 0.5, 0, 4, "text")


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


@pytest.mark.parametrize("query", ["leave sick", "the sick leaves", "Sick-leave?", "sick, sick leave"])
def test_a_search_in_the_same_words_is_reused_when_all_was_shown(query: str):
    query = query.replace("the ", "")
    (verdict,) = judge(search("2", query=query, top_k=20), **searched("sick leave", found=3))
    assert verdict.kind == "reuse"


def test_neighbours_that_were_merged_count_as_shown():
    merged = replace(evidence("h0"), merged=("h1", "h2", "h3", "h4"))
    full = searched("sick leave", found=0)
    asked, result = full["turn"]
    content, artifact = render_evidence([merged])
    full["turn"] = (asked, result.model_copy(update={"content": content, "artifact": artifact}))
    assert judge(search("2", query="leave sick", top_k=20), **full)[0].kind == "run"


def test_a_search_in_the_same_words_runs_when_it_asks_for_more_than_was_shown():
    full = searched("sick leave", found=5)
    assert judge(search("2", query="leave sick", top_k=20), **full)[0].kind == "run"
    assert judge(search("2", query="leave sick", top_k=5), **full)[0].kind == "reuse"
    assert judge(search("2", query="leave sick", top_k=3), **full)[0].kind == "reuse"
    assert judge(search("2", query="leave sick", source_type="pdf"), **full)[0].kind == "run"


def test_searches_in_the_same_words_in_one_batch_run_once_unless_the_later_asks_for_more():
    verdicts = judge(
        search("1", query="sick leave"), search("2", query="leave, sick"), search("3", query="leave sick", top_k=9)
    )
    assert [verdict.kind for verdict in verdicts] == ["run", "duplicate", "run"]


def test_the_same_words_under_another_scope_are_no_reuse():
    assert judge(search("2", query="leave sick"), **searched("sick leave", found=1), scope_key="x")[0].kind == "run"


def test_one_character_of_chinese_is_words_too():
    assert judge(search("2", query="假"), **searched("病假", found=1))[0].kind == "run"
    assert judge(search("2", query="病假？"), **searched("病假", found=1))[0].kind == "reuse"


def test_a_cap_for_a_family_refuses_what_is_beyond_it():
    calls = (search("1", query="a"), search("2", query="b"), {"name": "run_code", "args": {"code": "1"}, "id": "3"})
    verdicts = judge(*calls, family_calls_left={"search": 1})
    assert [verdict.kind for verdict in verdicts] == ["run", "refuse", "run"]
    assert verdicts[1].message == "no search calls are left in this turn; answer now or use another tool"


def test_a_closed_family_is_refused_with_the_reason():
    (verdict,) = judge(search("1", query="a"), closed_families={"search": "nothing new is found"})
    assert (verdict.kind, verdict.error, verdict.message) == ("refuse", "closed", "nothing new is found")


def test_a_clients_tool_is_handed_out():
    panel = client_tool({"name": "open_panel", "parameters": {"type": "object", "properties": {"tab": {}}}})
    verdicts = judge(
        {"name": "open_panel", "args": {"tab": 1}, "id": "1"},
        {"name": "open_panel", "args": {"x": 1}, "id": "2"},
        tools=ToolRegistry([panel]),
    )
    assert [verdict.kind for verdict in verdicts] == ["client", "refuse"]
    assert verdicts[1].message == "x: unknown argument. Arguments are: tab"


@given(st.lists(any_call, max_size=6), st.integers(0, 4))
def test_every_call_gets_one_verdict_and_never_more_run_than_are_left(calls: list[dict[str, Any]], left: int):
    verdicts = judge(*calls, calls_left=left)
    assert [verdict.call for verdict in verdicts] == calls
    assert sum(verdict.kind == "run" for verdict in verdicts) <= left
    assert verdicts == judge(*calls, calls_left=left)
    assert all(verdict.message for verdict in verdicts if verdict.kind != "run")
