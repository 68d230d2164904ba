"""One search with the user's words, before the model speaks."""

from __future__ import annotations

import time

from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.types import Command

from graphrag_agent.graph.loop import SEARCH_TOOL, Loop
from graphrag_agent.graph.policy.budget import Spent
from graphrag_agent.graph.policy.result_budget import fit_results, tokens_shown
from graphrag_agent.graph.running import run_call
from graphrag_agent.graph.state import TurnState

MAX_QUERY_CHARACTERS = 2_000
"""A pasted document is no query; its beginning usually says what is wanted."""


async def retrieve_once(loop: Loop, state: TurnState, config: RunnableConfig) -> Command[str]:
    """The same tool and the same evidence as in the loop, as if the model had asked for it."""
    questions = [message for message in state["messages"] if isinstance(message, HumanMessage)]
    query = questions[-1].text.strip()[:MAX_QUERY_CHARACTERS] if questions else ""
    if not query:
        return Command(goto="model")
    request, spent = loop.request(), Spent.of(state.get("budget"), now=time.time())
    call = {"name": SEARCH_TOOL, "args": {"query": query}, "id": f"once-{spent.question}", "type": "tool_call"}
    asked = AIMessage("", tool_calls=[call], id=f"ask-{spent.question}")
    result = await run_call(request, call, config, spent)
    turn = state.get("turn") or []  # evidence of earlier turns may stand in it
    fitted = fit_results([result], shown=tokens_shown(turn), limit=request.limits.max_evidence_tokens)
    budget = spent.plus(run=1).at(time.time())
    return Command(update={"turn": [asked, *fitted], "budget": budget}, goto="model")
