"""Opens a turn: clears what a killed turn left behind, picks the way to the documents, brings earlier evidence back."""

from __future__ import annotations

import time
from collections.abc import Sequence

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.types import Command, Overwrite

from graphrag_agent.context import Budget
from graphrag_agent.errors import QuestionTooLongError
from graphrag_agent.graph.loop import Loop, Request
from graphrag_agent.graph.nested import outer_families
from graphrag_agent.graph.policy.budget import Spent
from graphrag_agent.graph.prompts.building import question_tokens, system_text
from graphrag_agent.graph.prompts.digest import Summary, turns_to_sum_up
from graphrag_agent.graph.prompts.history import CANCELLED, newest_question
from graphrag_agent.graph.prompts.window import room_in
from graphrag_agent.graph.recall import recall_evidence
from graphrag_agent.graph.round import PASSAGE_TOKENS
from graphrag_agent.graph.state import TurnState, emptied
from graphrag_agent.token_estimate import estimate_tokens

RECALLED_SHARE_OF_ROOM = 0.25
"""Of the room that the question leaves, what evidence of earlier turns may take."""

RECALLED_SHARE_OF_EVIDENCE = 0.5
"""Of the tokens for evidence, what that of earlier turns may take: the question may well be a new one."""


async def start_turn(loop: Loop, state: TurnState, config: RunnableConfig) -> Command[str]:
    """An empty turn for the newest question; the question of a killed turn is marked as cancelled."""
    request = loop.request()
    protocol = request.protocol  # a request that can't be served fails here, before anything is spent
    messages = state.get("messages") or []
    room = _room(request, messages)
    question = newest_question(messages)
    now = time.time()
    outer = outer_families.get() if loop.is_nested else None
    started = Spent.begin((question and question.id) or "", now=now, family_limits=outer)
    cancelled = _cancelled(messages, Spent.of(state.get("budget"), now=now).question, started.question)
    update = {**({"messages": cancelled} if cancelled else {}), **emptied(state), "budget": started.at(now)}
    limit = _recalled_limit(request.limits, room) if protocol != "none" else 0
    recalled = await recall_evidence(request, messages, question_id=started.question, limit=limit)
    if recalled:
        update["turn"] = Overwrite([recalled]) if "turn" in update else [recalled]
    goto = "retrieve_once" if protocol == "one_shot" else "model"
    if turns_to_sum_up(messages, Summary.of(state.get("summary"), messages), request.limits):
        goto = "summarize_history"
    return Command(update=update, goto=goto)


def _room(request: Request, messages: Sequence[BaseMessage]) -> int:
    """Tokens that the newest question leaves of the model's window. Raises QuestionTooLongError."""
    limits, size = request.limits, question_tokens(messages)
    room = room_in(limits) - estimate_tokens(system_text(request.instructions)) - request.schema_tokens
    if size > room:
        raise QuestionTooLongError(
            f"the question has about {size} tokens; {max(0, room)} fit into the model's window of "
            f"{limits.max_prompt_tokens} with the instructions and room for an answer. Shorten it; if the model takes "
            "more, raise GRAPHRAG_MAX_PROMPT_TOKENS (Budget.max_prompt_tokens)"
        )
    return room - size


def _recalled_limit(limits: Budget, room: int) -> int:
    """Tokens for evidence of earlier turns; a search must still find room beside it."""
    evidence = limits.max_evidence_tokens
    beside = min(int(evidence * RECALLED_SHARE_OF_EVIDENCE), evidence - PASSAGE_TOKENS)
    return min(limits.max_recalled_tokens, int(room * RECALLED_SHARE_OF_ROOM), beside)


def _cancelled(messages: Sequence[BaseMessage], killed: str, current: str) -> list[BaseMessage]:
    """The killed turn's question, marked; it keeps its id and so its place."""
    if not killed or killed == current:
        return []
    return [
        message.model_copy(update={"additional_kwargs": {**message.additional_kwargs, "ending": CANCELLED}})
        for message in messages
        if message.id == killed
    ]
