"""When a turn stops finding something new."""

from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.tools import tool

from graphrag_agent.citations import Evidence
from graphrag_agent.graph.policy.pairing import error_message, tool_message
from graphrag_agent.graph.policy.progress import fruitless_rounds, queries_without_hits
from graphrag_agent.tools.evidence_message import render_evidence
from graphrag_agent.tools.knowledge_search import build_knowledge_search
from graphrag_agent.tools.registry import ToolRegistry
from tests.canned import CannedKnowledge


@tool
def clock(zone: str) -> str:
    """Tell the time."""
    return zone


TOOLS = ToolRegistry([build_knowledge_search(CannedKnowledge()), clock])


def round_of(*found: str | None, number: int = 0, tool_name: str = "knowledge_search") -> list[BaseMessage]:
    """A round with one call for each; it finds these passages ("a b"), or None: it fails."""
    calls = [
        {"name": tool_name, "args": {"query": f"q{number}-{place}"}, "id": f"{number}-{place}", "type": "tool_call"}
        for place, _ in enumerate(found)
    ]
    return [AIMessage("", tool_calls=calls), *map(_result, calls, found)]


def _result(call: dict[str, Any], found: str | None) -> BaseMessage:
    if found is None:
        return error_message(call, "down", "no answer", retryable=True)
    hits = [Evidence(n, n, "d", "T", "t.md", None, "", 0.5, 0, 1, n) for n in found.split()]
    return tool_message(call, *render_evidence(hits, note="none" if not hits else ""))


def test_a_round_that_finds_something_new_ends_the_row():
    turn = [*round_of("a", number=1), *round_of("a", number=2), *round_of("a b", number=3)]
    assert [fruitless_rounds(turn[: 2 * n], TOOLS) for n in range(4)] == [0, 0, 1, 0]


def test_a_neighbour_that_was_shown_inside_another_passage_is_not_new():
    both = Evidence("a", "a", "d", "T", "t.md", None, "", 0.5, 0, 3, "a b", merged=("b",))
    first = round_of("a", number=1)
    first[1] = tool_message(first[0].tool_calls[0], *render_evidence([both]))  # type: ignore[union-attr]
    assert fruitless_rounds([*first, *round_of("b", number=2)], TOOLS) == 1
    assert fruitless_rounds([*first, *round_of("b c", number=2)], TOOLS) == 0


def test_a_round_counts_once_however_many_calls_it_had():
    assert fruitless_rounds(round_of("a", "a", "a"), TOOLS) == 0
    assert fruitless_rounds([*round_of("a", number=1), *round_of("a", "", "a", number=2)], TOOLS) == 1


def test_rounds_that_failed_or_did_not_search_say_nothing():
    turn = [*round_of("a", number=1), *round_of("", number=2)]
    turn += [*round_of(None, number=3), *round_of("", number=4, tool_name="clock")]
    assert fruitless_rounds(turn, TOOLS) == 1


def test_gaps_are_the_searches_that_found_nothing():
    turn = [*round_of("a", "", number=1), *round_of("", None, number=2)]
    assert queries_without_hits(turn, TOOLS) == ["q1-1", "q2-0"]
