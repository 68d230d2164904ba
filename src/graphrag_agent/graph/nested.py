"""A turn inside a tool call: the question goes into a graph of its own, the answer and its evidence come back.

The nested graph is compiled without a checkpointer and called inside the task of its tool call, so LangGraph gives it a
namespace of that task in the outer turn's thread: killed, it goes on where it was.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any

from langchain_core.messages import HumanMessage
from langgraph.config import get_stream_writer
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import get_runtime

from graphrag_agent.citations import Evidence
from graphrag_agent.context import AgentContext
from graphrag_agent.errors import ToolFailedError
from graphrag_agent.events import LoopEvent
from graphrag_agent.tools.research_question import AnswerSubQuestion, NestedAnswer
from graphrag_agent.tools.spec import TurnLeft

OWN_SECONDS_SHARE = 0.75
"""Of the call's seconds, what the nested turn has before it must sum up: that may take a quarter of them again."""

PROGRESS = ("tool_start", "tool_progress", "tool_end")
"""Events of the nested turn that are the outer one's progress; its text and its answer are for the model alone."""

outer_families: ContextVar[Mapping[str, int]] = ContextVar("outer_families", default=MappingProxyType({}))
"""Calls of a family that the outer turn has left for the nested one, where there is a cap; read when it begins."""


def nested_answers(graph: CompiledStateGraph[Any, Any, Any, Any], tool_names: Collection[str]) -> AnswerSubQuestion:
    """What answers sub-questions with this graph, whose loop is nested and has the tools of these names.

    Principal, scope and the other narrowings of the calling request hold inside, since they are looked up anew there.
    """

    async def answer(question: str, *, call_id: str, left: TurnLeft) -> NestedAnswer:
        context = _narrowed(get_runtime(AgentContext).context or AgentContext(), left)
        if not (set(tool_names) if context.tools is None else set(tool_names) & set(context.tools)):
            raise ToolFailedError("this request leaves research_question no tools to work with; answer without it")
        asked = {"messages": [HumanMessage(question, id=f"question-{call_id}")]}
        values: Mapping[str, Any] = {}
        tell = get_stream_writer()
        told: Any = {"stream_mode": ["custom", "values"], "output_keys": ["messages", "outcome"]}
        outer = outer_families.set(left.families)
        try:
            parts: AsyncIterator[Any] = graph.astream(asked, context=context, **told)
            async for mode, part in parts:
                if mode == "values":
                    values = part
                elif isinstance(part, LoopEvent) and part["event"] in PROGRESS:
                    tell(LoopEvent({**part, "id": f"{call_id}/{part['id']}", "parent": call_id}))
        finally:
            outer_families.reset(outer)
        return _answer_in(values)

    return answer


def _narrowed(context: AgentContext, left: TurnLeft) -> AgentContext:
    """The request's options for a nested turn, which can't wait for a client and spends from what is left."""
    seconds = left.seconds * OWN_SECONDS_SHARE
    limits = {"max_tool_calls": left.tool_calls, "max_seconds": seconds}
    asked = {name: getattr(context, name) for name in limits}
    smaller = {name: most if asked[name] is None else min(asked[name], most) for name, most in limits.items()}
    return context.model_copy(update={"client_tools": (), **smaller})


def _answer_in(values: Mapping[str, Any]) -> NestedAnswer:
    outcome = values["outcome"]
    tokens = outcome["tokens"]
    evidence = ({**item, "merged": tuple(item["merged"])} for item in outcome["evidence"])
    return NestedAnswer(
        text=str(values["messages"][-1].text),
        evidence=tuple(Evidence(**item) for item in evidence),
        ending=outcome["ending"],
        gaps=tuple(outcome["gaps"]),
        usage={
            "input_tokens": tokens["input"],
            "output_tokens": tokens["output"],
            "tool_calls": outcome["calls"]["run"],
            "families": outcome["families"],
        },
    )
