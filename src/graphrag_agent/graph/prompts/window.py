"""Everything that one model call is given, within the model's window."""

from __future__ import annotations

import json
from collections.abc import Sequence

from langchain_core.messages import BaseMessage, ToolMessage

from graphrag_agent.context import Budget
from graphrag_agent.graph.policy.pairing import calls_of
from graphrag_agent.graph.policy.result_budget import fit_results
from graphrag_agent.graph.prompts.history import tokens_of
from graphrag_agent.token_estimate import estimate_tokens

ANSWER_SHARE, ANSWER_TOKENS = 1 / 8, 4_096
"""Of the window, what is kept free for the answer and for what the estimate misses; never more than so many."""

EVIDENCE_SHARE, HISTORY_SHARE, RECALLED_SHARE = 1 / 2, 1 / 4, 1 / 16
"""Of the window, what the results of a turn, earlier turns, and evidence of earlier turns may take."""


def within_window(budget: Budget, window: int | None) -> Budget:
    """The budget for a model whose window takes so many tokens; None where that is unknown."""
    most = min(budget.max_prompt_tokens, window) if window and window > 0 else budget.max_prompt_tokens
    limits = {
        "max_prompt_tokens": most,
        "max_evidence_tokens": min(budget.max_evidence_tokens, int(most * EVIDENCE_SHARE)),
        "max_history_tokens": min(budget.max_history_tokens, int(most * HISTORY_SHARE)),
        "max_recalled_tokens": min(budget.max_recalled_tokens, int(most * RECALLED_SHARE)),
    }
    if all(getattr(budget, name) == value for name, value in limits.items()):
        return budget
    return budget.model_copy(update=limits)


def room_in(limits: Budget) -> int:
    """Tokens that a prompt may have, so that its answer still fits."""
    return limits.max_prompt_tokens - min(ANSWER_TOKENS, int(limits.max_prompt_tokens * ANSWER_SHARE))


def fit_turn(turn: Sequence[BaseMessage], room: int) -> tuple[list[BaseMessage], int]:
    """The turn's messages within the room, and what is left of it: earlier results are cut before later ones.

    The limit on results of a turn usually sees to it. Here is what it can't know: how long the question is, and what
    the model itself wrote. Messages are cut, never dropped.
    """
    costs = [_cost(message) for message in turn]
    if (left := room - sum(costs)) >= 0:
        return list(turn), left
    is_result = [isinstance(message, ToolMessage) for message in turn]
    limit = max(0, room - sum(cost for cost, result in zip(costs, is_result, strict=True) if not result))
    shown, fitted = 0, list(turn)
    for at in reversed(range(len(turn))):
        message = turn[at]
        if isinstance(message, ToolMessage):
            (fitted[at],) = fit_results([message], shown=shown, limit=limit)
            shown += tokens_of(fitted[at])
    return fitted, max(0, limit - shown)


def _cost(message: BaseMessage) -> int:
    calls = calls_of(message)
    return tokens_of(message) + (estimate_tokens(json.dumps(calls, ensure_ascii=False, default=str)) if calls else 0)
