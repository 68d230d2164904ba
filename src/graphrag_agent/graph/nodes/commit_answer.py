"""Resolves and checks the answer's citations, writes it to the thread and empties the turn."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import asdict

from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.config import get_stream_writer
from langgraph.types import Command

from graphrag_agent.answer_check.checking import AnswerCheck, check_answer
from graphrag_agent.citations import CitedText, Evidence, resolve_citations
from graphrag_agent.citations.annotations import annotated
from graphrag_agent.events import CUT_OFF, LoopEvent
from graphrag_agent.graph.loop import Loop, Request
from graphrag_agent.graph.policy.budget import Spent
from graphrag_agent.graph.policy.finish_reason import is_cut_off
from graphrag_agent.graph.policy.progress import queries_without_hits
from graphrag_agent.graph.policy.refusal import words_of_refusal
from graphrag_agent.graph.recall import stale_warnings, without_recalled
from graphrag_agent.graph.state import TurnState, emptied
from graphrag_agent.models.phrases import render_phrase
from graphrag_agent.tools.evidence_message import read_evidence, shown_ids

logger = logging.getLogger(__name__)


def commit_answer(loop: Loop, state: TurnState, config: RunnableConfig) -> Command[str]:
    """The only node that writes an answer to `messages`. The answer keeps the id it was streamed under."""
    request, answer, evidence = loop.request(), state["turn"][-1], read_evidence(state["turn"])
    cited = resolve_citations(answer.text if answer.text.strip() else _refusal(request, state), evidence)
    check = _checked(cited, evidence)
    outcome = _outcome(request, state, cited, check)
    # citations go out on the stream with their texts; the thread keeps the places only
    get_stream_writer()(
        LoopEvent(
            event="answer",
            text=cited.text,
            message_id=answer.id,
            citations=[citation.as_dict() for citation in check.citations],
            outcome=outcome,
        )
    )
    metadata = {
        **answer.response_metadata,
        "outcome": outcome,
        "citations": [citation.place for citation in check.citations],
    }
    handed_over = _handed_over(state, check, evidence) if loop.is_nested else {}
    spans = [(sentence.start, sentence.end, sentence.ids) for sentence in check.sentences]
    # text only: what the model thought, or quoted into blocks of its own, is not part of the thread
    committed = AIMessage(
        annotated(cited.text, check.citations, spans),
        id=answer.id,
        response_metadata=metadata,
        usage_metadata=getattr(answer, "usage_metadata", None),
    )
    return Command(
        update={
            **emptied(state),
            "messages": [committed],
            "budget": {},
            "outcome": {**outcome, **handed_over},
        }
    )


def _refusal(request: Request, state: TurnState) -> str:
    """For a refusal without a text, the only message without one that leads here."""
    said, language = words_of_refusal(state["turn"][-1]), request.language(state["messages"])
    return render_phrase("declined_because" if said else "declined", language=language, said=said)


def _handed_over(state: TurnState, check: AnswerCheck, evidence: Mapping[str, Evidence]) -> dict[str, object]:
    """What the outer turn takes over beside the answer."""
    spent = Spent.of(state.get("budget"), now=time.time())
    return {"evidence": [_as_dict(evidence[item.id]) for item in check.citations], "families": dict(spent.families)}


def _as_dict(evidence: Evidence) -> dict[str, object]:
    return {**asdict(evidence), "merged": list(evidence.merged)}


def _checked(cited: CitedText, evidence: Mapping[str, Evidence]) -> AnswerCheck:
    try:
        return check_answer(cited, evidence)
    except Exception:  # an answer without its check is worth more than none
        logger.exception("the check of the answer's citations failed")
        return AnswerCheck(cited.citations, ())


def _outcome(request: Request, state: TurnState, cited: CitedText, check: AnswerCheck) -> dict[str, object]:
    spent = Spent.of(state.get("budget"), now=time.time())
    is_uncited = (
        bool(shown_ids(without_recalled(state["turn"])))
        and not cited.citations
        and request.limits.citation_policy != "off"
    )
    outcome: dict[str, object] = {
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
            *(["uncited: the answer names no source, though evidence was found"] if is_uncited else []),
            *([CUT_OFF] if is_cut_off(state["turn"][-1]) else []),
            *check.conflicts,
            *stale_warnings(state["turn"]),
        ],
    }
    return {**outcome, "check": told} if (told := check.told) else outcome
