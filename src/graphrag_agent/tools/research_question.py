"""The tool that gives one sub-question to a turn of its own, and takes over the evidence that its answer cites."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Protocol

from langchain_core.tools import InjectedToolArg, InjectedToolCallId, StructuredTool
from pydantic import Field

from graphrag_agent.citations import Evidence, resolve_citations
from graphrag_agent.errors import ToolFailedError
from graphrag_agent.models.packing import sentence_end
from graphrag_agent.retrieval.evidence_tags import without_tags
from graphrag_agent.tools._library import listed, plain
from graphrag_agent.tools.evidence_message import render_evidence
from graphrag_agent.tools.spec import ToolSpec, TurnLeft

RESEARCH_FAMILY = "research"
RESEARCH_SECONDS = 180.0
"""A nested turn has some model calls of seconds each; what is late by then is stopped."""

MAX_PASSAGES = 12
"""Passages handed over: an answer that cites more has more than one topic."""

MAX_ANSWER_CHARACTERS = 6_000
"""Some 1,500 tokens: the answer to one sub-question, not a report."""

MAX_GAPS, GAP_CHARACTERS = 10, 150
"""Searches that are told to have found nothing, and what of each is shown."""


@dataclass(frozen=True, slots=True)
class NestedAnswer:
    """What a nested turn came to."""

    text: str
    evidence: tuple[Evidence, ...] = ()
    """What the text cites, in the order of its first mention."""
    ending: str = "answered"
    gaps: tuple[str, ...] = ()
    """Searches that found nothing."""
    usage: Mapping[str, Any] = field(default_factory=dict)
    """What it cost: input_tokens, output_tokens, tool_calls, and calls by family for those that have a cap."""


class AnswerSubQuestion(Protocol):
    """Answers a question in a turn of its own, for the principal and the request of the calling one."""

    async def __call__(self, question: str, *, call_id: str, left: TurnLeft) -> NestedAnswer:
        """The answer; it spends no more than `left`. What happens inside is told as part of the call `call_id`."""
        ...


def build_research_question(run: AnswerSubQuestion) -> ToolSpec:
    """A `research_question` whose questions `run` answers; what the calling turn may still spend is injected.

    It has no side effects, and is still not marked so: a call must have a task of its own, in which its nested turn
    keeps its checkpoints. A call that was started early has none, and would begin again after a crash.
    """

    async def research_question(
        question: Annotated[
            str,
            Field(
                min_length=3,
                max_length=1_000,
                description="One sub-question that can be understood alone: whoever answers it sees nothing else",
            ),
        ],
        left: Annotated[Any, InjectedToolArg],
        tool_call_id: Annotated[str, InjectedToolCallId],
    ) -> tuple[str, dict[str, Any]]:
        """Have one part of a question researched apart from this conversation, with several searches of its own.

        Use it when a question has parts that each need more than one search: ask for all of them in one message, they
        are worked on side by side. Don't use it for what one search or one query answers, for a computation, or for
        the whole question. The answer comes with the passages that it rests on; cite those by their ids.
        """
        if left.tool_calls < 1:
            raise ToolFailedError("too few tool calls are left for research; ask fewer at once, or answer now")
        found = await run(question, call_id=tool_call_id, left=left)
        return _rendered(found)

    tool = StructuredTool.from_function(
        coroutine=research_question,
        name="research_question",
        description=inspect.cleandoc(research_question.__doc__ or ""),
        response_format="content_and_artifact",
    )
    return ToolSpec(tool, family=RESEARCH_FAMILY, timeout_seconds=RESEARCH_SECONDS)


def _rendered(found: NestedAnswer) -> tuple[str, dict[str, Any]]:
    kept = {item.id: item for item in found.evidence[:MAX_PASSAGES]}
    answer = without_tags(resolve_citations(found.text, kept).text)
    told = []
    if (left_out := len(found.evidence) - len(kept)) > 0:
        told.append(f"{left_out} of the passages that it cites were left out.")
    if len(answer) > MAX_ANSWER_CHARACTERS:
        end = sentence_end(answer, MAX_ANSWER_CHARACTERS)
        told.append(f"{len(answer) - end} characters of it were left out; ask for less at once.")
        answer = answer[:end]
    if found.ending != "answered":
        told.append(f"It was cut short ({found.ending}).")
    if found.gaps:
        gaps = listed([plain(gap, GAP_CHARACTERS) for gap in found.gaps], MAX_GAPS)
        told.append(f"Nothing was found for: {gaps}.")
    origin = "from the passages above" if kept else "which cites nothing"
    note = "\n".join([f"the answer of the research, {origin}:", answer, *([f"({' '.join(told)})"] if told else [])])
    content, artifact = render_evidence(list(kept.values()), note=note)
    return content, {**artifact, "usage": dict(found.usage), "gaps": list(found.gaps)}
