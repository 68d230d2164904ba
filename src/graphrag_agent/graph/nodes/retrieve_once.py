"""One search with the user's words, before the model speaks."""

from __future__ import annotations

import time

from langchain_core.runnables import RunnableConfig
from langgraph.types import Command

from graphrag_agent.graph.loop import Loop
from graphrag_agent.graph.own_search import question_as_query, search_for
from graphrag_agent.graph.policy.budget import Spent
from graphrag_agent.graph.policy.result_budget import fit_results, tokens_shown
from graphrag_agent.graph.state import TurnState


async def retrieve_once(loop: Loop, state: TurnState, config: RunnableConfig) -> Command[str]:
    """The evidence that stands behind the question in the model's one prompt."""
    query = question_as_query(state["messages"])
    if not query:
        return Command(goto="model")
    spent = Spent.of(state.get("budget"), now=time.time())
    request, turn = loop.request(), state.get("turn") or []
    asked, result, spent = await search_for(query, request, turn, config, spent)
    # evidence of earlier turns may stand in the turn already
    fitted = fit_results([result], shown=tokens_shown(turn), limit=request.limits.max_evidence_tokens)
    return Command(update={"turn": [asked, *fitted], "budget": spent.at(time.time())}, goto="model")
