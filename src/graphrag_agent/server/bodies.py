"""What requests hold, and what is told of a thread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import BaseMessage
from pydantic import BaseModel, ConfigDict, Field

from graphrag_agent.context import AgentContext
from graphrag_agent.conversation.answer import Answer
from graphrag_agent.conversation.cited_places import locate_citations
from graphrag_agent.identity import Principal
from graphrag_agent.persistence.threads import ThreadPage
from graphrag_agent.retrieval.scope import Scope
from graphrag_agent.server.served import safe_outcome
from graphrag_agent.tools.knowledge_search import Readable

_Name = Field(default=None, min_length=1, max_length=128, pattern=r"^[^\x00]*$")  # no database takes a NUL


class TurnBody(BaseModel):
    """What all ways to begin a turn take."""

    model_config = ConfigDict(extra="forbid")

    context: AgentContext | None = Field(default=None, description="Options of this run; they only narrow")
    stream: bool = Field(default=False, description="true: events as they happen; false: the answer")


class QuestionBody(TurnBody):
    """A question; without a thread it begins one."""

    question: str
    thread: str | None = _Name
    branch: str | None = _Name


class EditBody(TurnBody):
    """Another wording of a question."""

    text: str


class ResumeBody(TurnBody):
    """Results of the client's tools: call id -> result."""

    results: dict[str, Any] = Field(max_length=64)


class NoBody(BaseModel):
    """Nothing."""

    model_config = ConfigDict(extra="forbid")


def answer_body(answer: Answer) -> dict[str, Any]:
    """The answer as JSON, with the ids that later requests take."""
    return {
        **answer.as_dict(),
        "outcome": safe_outcome(answer.outcome),
        "thread": answer.thread,
        "message_id": answer.message_id,
        "question_id": answer.question_id,
        "pending": [dict(call) for call in answer.pending],
    }


def threads_body(page: ThreadPage) -> dict[str, Any]:
    """A list of threads, without whose they are: the reader's own."""
    threads = [
        {
            "id": thread.id,
            "title": thread.title,
            "turns": thread.turns,
            "used": thread.used.isoformat() if thread.used else None,
        }
        for thread in page.threads
    ]
    return {"threads": threads, "next": page.next}


async def messages_body(
    messages: Sequence[BaseMessage], knowledge: Readable | None, principal: Principal
) -> list[dict[str, Any]]:
    """Questions and answers, oldest first; citations with the text that the principal may read today."""
    told = []
    for message in messages:
        is_question = message.type == "human"
        item: dict[str, Any] = {"id": message.id, "role": "user" if is_question else "assistant", "text": message.text}
        if is_question:
            item["ending"] = message.additional_kwargs.get("ending", "")
        else:
            kept = message.response_metadata
            item["outcome"] = safe_outcome(kept.get("outcome") or {})
            located = await locate_citations(message, knowledge, Scope.of(principal))
            item["citations"] = [place.as_dict() for place in located]
        told.append(item)
    return told
