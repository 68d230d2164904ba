"""What a turn may still spend."""

import pytest

from graphrag_agent.context import AgentContext, Budget
from graphrag_agent.graph.policy.budget import (
    PROCESS,
    Spent,
    describe_left,
    ending_after_batch,
    family_calls_left,
    seconds_left,
)

LIMITS = Budget(max_rounds=3, max_tool_calls=5, max_seconds=10)


@pytest.mark.parametrize(
    ("rounds", "run", "ending"),
    [(1, 1, ""), (2, 4, ""), (3, 1, "max_rounds"), (1, 5, "max_calls"), (3, 5, "max_rounds")],
)
def test_no_round_starts_when_rounds_or_calls_are_spent(rounds: int, run: int, ending: str):
    assert ending_after_batch(Spent(rounds=rounds, run=run), LIMITS) == ending


def test_the_clock_stands_still_while_a_killed_turn_waits_for_another_process():
    spent = Spent.begin("q1", now=100.0)
    assert seconds_left(spent, LIMITS, now=104.0) == 6
    written = spent.at(104.0)
    assert Spent.of(written, now=200.0).started_at == 100.0, "this process goes on"
    resumed = Spent.of({**written, "process": "killed"}, now=200.0)
    assert seconds_left(resumed, LIMITS, now=201.0) == 5


def test_the_channel_holds_what_was_spent_and_leaves_zeros_out():
    spent = Spent.begin("q1", now=5.0).plus(rounds=1, run=2)
    assert spent.at(7.5) == {
        "question": "q1",
        "started_at": 5.0,
        "seconds": 2.5,
        "process": PROCESS,
        "rounds": 1,
        "run": 2,
    }
    assert Spent.of(spent.at(7.5), now=9.0).plus(rounds=1).rounds == 2
    assert Spent.of({"rounds": 1, "from_another_version": 9}, now=0) == Spent(rounds=1)


def test_calls_are_counted_for_the_families_with_a_cap():
    limits = Budget(max_family_calls={"search": 3})
    spent = Spent().plus_families(["search", "other", "search"], limits)
    assert spent.families == {"search": 2}
    assert family_calls_left(spent, limits) == {"search": 1}


def test_the_model_is_told_what_is_left():
    spent = Spent.begin("q1", now=0.0).plus(rounds=1, run=2)
    assert describe_left(spent, LIMITS, now=4.2) == "Left in this turn: 2 rounds, 3 tool calls, 6 seconds."


def test_a_request_narrows_the_budget_and_never_widens_it():
    asked = AgentContext(max_rounds=50, max_tool_calls=2)
    assert asked.narrow(LIMITS) == Budget(max_rounds=3, max_tool_calls=2, max_seconds=10)
