"""What the model node and the guard must see alike about the running round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from langchain_core.messages import AnyMessage, BaseMessage, ToolMessage
from langchain_core.runnables import RunnableConfig

from graphrag_agent.context import Budget
from graphrag_agent.events import EVIDENCE_IDS
from graphrag_agent.graph.loop import Request
from graphrag_agent.graph.policy.budget import Spent, family_calls_left
from graphrag_agent.graph.policy.guard import GuardRules
from graphrag_agent.graph.policy.progress import fruitless_rounds
from graphrag_agent.graph.policy.result_budget import fit_results, tokens_shown
from graphrag_agent.graph.policy.usage import newest_results
from graphrag_agent.tools.evidence_message import rename_in, shown_ids
from graphrag_agent.tools.research_question import RESEARCH_FAMILY
from graphrag_agent.tools.spec import SEARCH_FAMILY

PASSAGE_TOKENS = 200
"""Room that a passage needs: the median of a real handbook's has 163 tokens, and its tag some more."""


def guard_rules(request: Request, turn: Sequence[BaseMessage], ledger: Mapping[str, str], spent: Spent) -> GuardRules:
    """The rules for the calls of this round."""
    limits = request.limits
    fruitless = fruitless_rounds(turn, request.tools)
    return GuardRules(
        tools=request.tools,
        turn=turn,
        ledger=ledger,
        calls_left=limits.max_tool_calls - spent.run,
        family_calls_left=family_calls_left(spent, limits),
        closed_families=_closed_families(fruitless, turn, limits),
        is_stalled=fruitless >= limits.stall_limit,
        scope_key=request.scope_key,
    )


def settled(request: Request, turn: Sequence[AnyMessage]) -> tuple[list[AnyMessage], list[AnyMessage]]:
    """The turn as a model may see it, and the newest results that had to change for it.

    Short ids stand for one passage only, and results fit the tokens of the turn together. Here alone, before a model
    sees them: calls with a task of their own don't see each other's results.
    """
    newest = newest_results(turn)
    earlier = list(turn[: len(turn) - len(newest)])
    results = [message for message in newest if isinstance(message, ToolMessage)]
    fitted = _fitted(request, rename_in(results, earlier), earlier)
    changed = [after for before, after in zip(results, fitted, strict=True) if after is not before]
    by_id: dict[str | None, AnyMessage] = {message.id: message for message in changed}
    return [*earlier, *(by_id.get(message.id, message) for message in newest)], [*changed]


def citing(config: RunnableConfig, turn: Sequence[BaseMessage]) -> RunnableConfig:
    """The config for a model call that may cite the turn's evidence: whoever shows its text knows the real ids."""
    metadata = {**(config.get("metadata") or {}), EVIDENCE_IDS: " ".join(shown_ids(turn))}
    return {**config, "metadata": metadata}


def _closed_families(fruitless: int, turn: Sequence[BaseMessage], limits: Budget) -> dict[str, str]:
    """Families of tools that may not be called any more, and why."""
    if fruitless >= limits.stall_limit:
        why = f"The last {fruitless} rounds of searches found nothing new, so searching is closed."
    elif turn and limits.max_evidence_tokens - tokens_shown(turn) < PASSAGE_TOKENS:
        why = "The tokens for evidence are spent, so searching is closed."
    else:
        return {}
    told = f"{why} Answer from the evidence you have, and say what is missing."
    return dict.fromkeys((SEARCH_FAMILY, RESEARCH_FAMILY), told)  # a nested turn would search on


def _fitted(request: Request, results: list[ToolMessage], earlier: Sequence[BaseMessage]) -> list[ToolMessage]:
    """The results, those that had tasks of their own cut to what the turn has left; the others are fitted already."""
    alone = [result for result in results if request.travels_alone(result.name or "")]
    if not alone:
        return results
    own = {result.tool_call_id for result in alone}
    shown = tokens_shown([*earlier, *(result for result in results if result.tool_call_id not in own)])
    fitted = fit_results(alone, shown=shown, limit=request.limits.max_evidence_tokens)
    by_call = {result.tool_call_id: result for result in fitted}
    return [by_call.get(result.tool_call_id, result) for result in results]
