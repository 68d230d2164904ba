"""What a turn may still spend."""

import pytest

from graphrag_agent.context import AgentContext, Budget
from graphrag_agent.graph.policy.budget import Spent, ending_after_batch, is_out_of_time

LIMITS = Budget(max_rounds=3, max_tool_calls=5, max_seconds=10)


@pytest.mark.parametrize(
    ("rounds", "run", "ending"),
    [(1, 1, ""), (2, 4, ""), (3, 1, "max_rounds"), (1, 5, "max_calls"), (3, 5, "max_rounds")],
)
def test_no_round_starts_when_rounds_or_calls_are_spent(rounds: int, run: int, ending: str):
    assert ending_after_batch(Spent(rounds=rounds, run=run), LIMITS) == ending


def test_time_is_checked_after_the_first_round():
    assert not is_out_of_time(Spent(started_at=0), LIMITS, now=100)
    assert is_out_of_time(Spent(started_at=0, rounds=1), LIMITS, now=10)
    assert not is_out_of_time(Spent(started_at=0, rounds=1), LIMITS, now=9.9)


def test_the_channel_holds_what_was_spent_and_leaves_zeros_out():
    spent = Spent(question="q1", started_at=5.0).plus(rounds=1, run=2)
    assert spent.channel == {"question": "q1", "started_at": 5.0, "rounds": 1, "run": 2}
    assert Spent.of(spent.channel) == spent
    assert Spent.of({"rounds": 1, "from_another_version": 9}) == Spent(rounds=1)


def test_a_request_narrows_the_budget_and_never_widens_it():
    asked = AgentContext(max_rounds=50, max_tool_calls=2)
    assert asked.narrow(LIMITS) == Budget(max_rounds=3, max_tool_calls=2, max_seconds=10)
