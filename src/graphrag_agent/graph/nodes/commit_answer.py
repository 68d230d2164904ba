"""Resolves the answer's citations, writes it to the thread and empties the turn."""

from __future__ import annotations

import time

from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.config import get_stream_writer
from langgraph.types import Command, Overwrite

from graphrag_agent.citations import CitedText, resolve_citations
from graphrag_agent.graph.loop import Loop
from graphrag_agent.graph.policy.budget import Spent
from graphrag_agent.graph.state import TurnState
from graphrag_agent.tools.evidence_message import read_evidence


def commit_answer(loop: Loop, state: TurnState, config: RunnableConfig) -> Command[str]:
    """The only node that writes an answer to `messages`. The answer keeps the id it was streamed under."""
    answer = state["turn"][-1]
    cited = resolve_citations(answer.text, read_evidence(state["turn"]))
    outcome = _outcome(state, cited)
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
    content = answer.content if cited.text == answer.text else cited.text
    committed = AIMessage(
        content, id=answer.id, response_metadata=metadata, usage_metadata=getattr(answer, "usage_metadata", None)
    )
    return Command(
        update={
            "messages": [committed],
            "turn": Overwrite([]),
            "ledger": {},
            "budget": {},
            "ending": "",
            "outcome": outcome,
        }
    )


def _outcome(state: TurnState, cited: CitedText) -> dict[str, object]:
    spent = Spent.of(state.get("budget"))
    ending = state.get("ending") or "answered"
    return {
        "ending": ending,
        "rounds": spent.rounds,
        "calls": {"run": spent.run, "reused": spent.reused, "refused": spent.refused},
        "seconds": round(max(0.0, time.time() - spent.started_at), 3),
        "tokens": {"input": spent.input_tokens, "output": spent.output_tokens},
        "citations": [citation.id for citation in cited.citations],
        "warnings": [f"unknown citation {id_!r} was removed" for id_ in cited.unknown],
    }
