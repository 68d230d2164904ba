"""A chat model of another provider's library, over real HTTP: what its server gets keeps to that server's rules."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from graphrag_agent import RagAgent
from graphrag_agent.context import Budget
from graphrag_agent.events import AnswerReady, TextDelta, ThinkingDelta, TurnEnded
from tests.canned import CannedKnowledge, id_of
from tests.fake_anthropic import NEEDS_TOOLS, Block, FakeAnthropic, text, thinking, use

anthropic = pytest.importorskip("langchain_anthropic", reason="needs langchain-anthropic")
SEARCH = "knowledge_search"
CITED = id_of("All about a.")
ANSWER = f"Ten days [{CITED}]."


def agent_on(server: FakeAnthropic, knowledge: CannedKnowledge | None = None, **budget: Any) -> RagAgent:
    model = anthropic.ChatAnthropic(model="claude", api_key="none", base_url=server.base_url, max_retries=0)
    return RagAgent(model=model, knowledge=knowledge or CannedKnowledge(), budget=Budget(**budget))


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize(
    ("rounds", "run"),
    [
        ([[text("Let me look."), use("t1", SEARCH, query="a")]], 1),
        ([[use("t1", SEARCH, query="a"), use("t2", SEARCH, query="b")]], 2),
        ([[use("t1", SEARCH, query="a")], [use("t1", SEARCH, query="b")]], 2),
        ([[use("t1", SEARCH, query="a"), use("t1", SEARCH, query="b")]], 2),
        ([[use("t1", SEARCH, query="a"), use("t2", "nope", query="b")]], 1),
        ([[use("t1", SEARCH, query="a"), use("t2", SEARCH, q="b")]], 1),
        ([[use("t1", SEARCH, query="a"), use("t2", SEARCH, query="b" * 30_000)]], 1),
        ([[use("t1", f"functions.{SEARCH}", query="a")]], 1),
        (
            [
                [
                    use(
                        "t1",
                        "multi_tool_use.parallel",
                        tool_uses=[{"recipient_name": SEARCH, "parameters": {"query": name}} for name in ("a", "b")],
                    )
                ]
            ],
            2,
        ),
    ],
    ids=["one", "two", "an id again", "an id twice", "unknown", "bad arguments", "huge", "prefix", "wrapper"],
)
def test_every_call_has_its_result_and_every_result_its_call(
    rounds: Sequence[Sequence[Block]], run: int, streaming: bool
) -> None:
    with FakeAnthropic(*rounds, [text(ANSWER)], [text("Again ten.")]) as server:
        agent = agent_on(server)
        if streaming:
            *_, ended = agent.stream("How long?", thread="t")
            assert isinstance(ended, TurnEnded)
            outcome = ended.outcome
        else:
            outcome = agent.ask("How long?", thread="t").outcome
        assert agent.history("t")[-1].text == ANSWER
        assert agent.ask("Sure?", thread="t").text == "Again ten."
    assert server.refused == []
    assert (outcome["ending"], outcome["calls"]["run"]) == ("answered", run)
    assert max(len(json.dumps(body)) for body in server.bodies) < 20_000, (
        "what was refused as too long is not sent back"
    )


def test_thoughts_are_events_go_back_within_the_turn_and_are_not_kept() -> None:
    first = [thinking("Where to look?"), text("Let me look."), use("t1", SEARCH, query="a")]
    with FakeAnthropic(first, [thinking("So it is ten."), text(ANSWER)], [text("Again ten.")]) as server:
        agent = agent_on(server)
        events = list(agent.stream("How long?", thread="t"))
        agent.ask("Sure?", thread="t")
    assert "".join(e.text for e in events if isinstance(e, ThinkingDelta)) == "Where to look?So it is ten."
    [answer] = [event for event in events if isinstance(event, AnswerReady)]
    deltas = [e.text for e in events if isinstance(e, TextDelta) and e.message_id == answer.message_id]
    assert ("".join(deltas), answer.text) == (ANSWER, ANSWER)
    assert server.refused == []
    assert thinking("Where to look?") in server.bodies[1]["messages"][1]["content"], "the provider demands them"
    assert "Where to look?" not in json.dumps(server.bodies[2])


def test_a_turn_that_may_not_go_on_ends_in_an_answer_though_a_request_without_tools_is_refused() -> None:
    """The calls and results of such a turn go as text, from then on at once."""
    rounds = [[use(f"t{number}", SEARCH, query=name)] for number, name in enumerate("ab")]
    with FakeAnthropic(*rounds, [text(ANSWER)], *rounds, [text(ANSWER)]) as server:
        agent = agent_on(server, max_rounds=2)
        answers = [agent.ask("How long?") for _ in range(2)]
    assert [(answer.text, answer.outcome["ending"]) for answer in answers] == [(ANSWER, "max_rounds")] * 2
    assert server.refused == [NEEDS_TOOLS]
    for body in (server.bodies[3], server.bodies[-1]):
        assert "tools" not in body
        assert "All about a." in json.dumps(body) and "All about b." in json.dumps(body)
    assert [citation.document_id for citation in answers[0].citations]


def test_a_search_that_is_closed_leaves_an_answer_too() -> None:
    knowledge = CannedKnowledge(lambda query: ["All about a."])
    with FakeAnthropic(*[[use(f"t{name}", SEARCH, query=name)] for name in "abc"], [text(ANSWER)]) as server:
        answer = agent_on(server, knowledge).ask("How long?")
    assert (answer.text, answer.outcome["ending"]) == (ANSWER, "no_new_evidence")
    assert server.refused == [NEEDS_TOOLS]


def test_an_answer_without_citations_is_asked_for_once_more() -> None:
    passage = "Sick leave of the staff lasts ten working days a year."
    cited = f"{passage[:-1]} [{id_of(passage)}]."
    with FakeAnthropic([use("t1", SEARCH, query="a")], [text(passage)], [text(cited)]) as server:
        answer = agent_on(server, CannedKnowledge(lambda query: [passage])).ask("How long is sick leave?")
    assert (answer.text, len(answer.citations)) == (cited, 1)
    assert server.refused == [NEEDS_TOOLS]
