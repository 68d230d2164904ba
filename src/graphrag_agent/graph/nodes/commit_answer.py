"""Resolves the answer's citations, writes it to the thread and empties the turn."""

from __future__ import annotations

import time

from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.config import get_stream_writer
from langgraph.types import Command

from graphrag_agent.citations import CitedText, resolve_citations
from graphrag_agent.graph.loop import Loop, Request
from graphrag_agent.graph.policy.budget import Spent
from graphrag_agent.graph.policy.progress import queries_without_hits
from graphrag_agent.graph.recall import stale_warnings
from graphrag_agent.graph.state import TurnState, emptied
from graphrag_agent.tools.evidence_message import read_evidence


def commit_answer(loop: Loop, state: TurnState, config: RunnableConfig) -> Command[str]:
    """The only node that writes an answer to `messages`. The answer keeps the id it was streamed under."""
    answer = state["turn"][-1]
    cited = resolve_citations(answer.text, read_evidence(state["turn"]))
    outcome = _outcome(loop.request(), state, cited)
    # texts of citations go out on the stream and stay out of the thread (DESIGN 8)
    get_stream_writer()(
        {
            "event": "answer",
            "text": cited.text,
            "message_id": answer.id,
            "citations": [{**citation.place, "text": citation.text} for citation in cited.citations],
            "outcome": outcome,
        }
    )
    metadata = {
        **answer.response_metadata,
        "outcome": outcome,
        "citations": [citation.place for citation in cited.citations],
    }
    # text only: what the model thought, or quoted into blocks of its own, is not part of the thread
    committed = AIMessage(
        cited.text, id=answer.id, response_metadata=metadata, usage_metadata=getattr(answer, "usage_metadata", None)
    )
    return Command(
        update={
            **emptied(state),
            "messages": [committed],
            "budget": {},
            "outcome": outcome,
        }
    )


def _outcome(request: Request, state: TurnState, cited: CitedText) -> dict[str, object]:
    spent = Spent.of(state.get("budget"), now=time.time())
    return {
        "ending": state.get("ending") or "answered",
        "reason": spent.reason,
        "rounds": spent.rounds,
        "calls": {"run": spent.run, "reused": spent.reused, "refused": spent.refused},
        "seconds": round(max(0.0, time.time() - spent.started_at), 3),
        "tokens": {"input": spent.input_tokens, "output": spent.output_tokens},
        "citations": [citation.id for citation in cited.citations],
        "gaps": queries_without_hits(state["turn"], request.tools),
        "warnings": [
            *(f"unknown citation {id_!r} was removed" for id_ in cited.unknown),
            *stale_warnings(state["turn"]),
        ],
    }
