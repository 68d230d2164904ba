"""A search that the loop makes itself, with the user's words."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig

from graphrag_agent.graph.loop import SEARCH_TOOL, Request
from graphrag_agent.graph.policy.budget import Spent
from graphrag_agent.graph.running import run_call
from graphrag_agent.models.questions import split_question
from graphrag_agent.tools.evidence_message import rename_in

MAX_QUERY_CHARACTERS = 2_000
"""A pasted document is no query; its beginning usually says what is wanted."""


MAX_EARLIER = 3
"""Questions before it that may complete one such as "And for contractors?"."""


def question_as_query(messages: Sequence[BaseMessage]) -> str:
    """The newest question as a query, with the words of those before it that it leaves out; empty where there is none.

    A model would write such a query itself; here nobody does.
    """
    asked = (message for message in reversed(messages) if isinstance(message, HumanMessage))
    texts = [message.text.strip()[:MAX_QUERY_CHARACTERS] for message in islice(asked, 1 + MAX_EARLIER)]
    if not texts:
        return ""
    question, *earlier = texts
    completed = split_question(question, previous=earlier[::-1])
    is_complete = len(completed) != 1 or completed == split_question(question)
    return question if is_complete else completed[0].query


async def search_for(
    query: str,
    request: Request,
    turn: Sequence[BaseMessage],
    config: RunnableConfig,
    spent: Spent,
    *,
    least_seconds: float = 0.0,
) -> tuple[AIMessage, ToolMessage, Spent]:
    """The call and its result, for the turn: the same tool and evidence as if the model had asked for it.

    The result is whole: who shows it to a model fits it to what the turn may show.
    """
    name = f"{spent.question}-{spent.run}"  # a turn whose first search failed may make another
    call = {"name": SEARCH_TOOL, "args": {"query": query}, "id": f"once-{name}", "type": "tool_call"}
    asked = AIMessage("", tool_calls=[call], id=f"ask-{name}")
    result = await run_call(request, call, config, spent, least_seconds=least_seconds)
    (named,) = rename_in([result], turn)
    return asked, named, spent.plus(run=1).plus_families([request.tools[SEARCH_TOOL].family], request.limits)


def has_searched(turn: Sequence[BaseMessage]) -> bool:
    """Whether a search of the turn came to an end, with or without hits."""
    return any(
        isinstance(message, ToolMessage) and message.name == SEARCH_TOOL and message.status != "error"
        for message in turn
    )
