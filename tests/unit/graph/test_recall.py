"""Recalled evidence is told from results of calls, whatever their names."""

from langchain_core.messages import ToolMessage

from graphrag_agent.graph.policy.pairing import error_message, tool_message
from graphrag_agent.graph.recall import RECALLED, recalled_text, stale_warnings, without_recalled


def test_a_result_is_no_recalled_evidence_though_its_tool_has_that_name():
    wanted = {"name": RECALLED, "id": "earlier-1", "args": {}}
    turn = [tool_message(wanted, "found", {"stale": ["abc"]}), error_message(wanted, "unknown_tool", "no such tool")]
    assert without_recalled(turn) == turn
    assert (recalled_text(turn), stale_warnings(turn)) == ("", [])


def test_a_turn_that_an_earlier_version_left_waiting_is_read():
    """Version 0.1 told recalled evidence by its name."""
    old = ToolMessage("text", tool_call_id="earlier-1", id="earlier-1", name=RECALLED, artifact={"stale": ["k3f2a"]})
    assert without_recalled([old]) == []
    assert recalled_text([old]) == "text"
    assert "'k3f2a' of an earlier answer is stale" in stale_warnings([old])[0]
