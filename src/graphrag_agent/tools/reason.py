"""The tool that thinks a question through with a model of its own."""

from __future__ import annotations

import inspect
from typing import Annotated, Any

from langchain_core.tools import StructuredTool
from pydantic import Field

from graphrag_agent.models.asking import GivenModel
from graphrag_agent.tools._own_model import PromptedModel
from graphrag_agent.tools.spec import ToolSpec

MAX_TASK_CHARACTERS = 4_000
MAX_NOTES_CHARACTERS = 24_000
"""About 6,000 tokens of English: what the findings of a turn come to."""

REASON_SECONDS = 120.0
"""A thinking model may write for a minute before its first word."""


def build_reason(model: GivenModel) -> ToolSpec:
    """A `reason` that asks this model, which sees nothing but the task and the notes.

    The artifact has the tokens of the call as `usage`. With the offline model each call is refused: it only quotes.
    """
    asked = PromptedModel(model, "reason")

    async def reason(
        task: Annotated[
            str, Field(min_length=1, max_length=MAX_TASK_CHARACTERS, description="What to work out, complete in itself")
        ],
        notes: Annotated[
            str,
            Field(max_length=MAX_NOTES_CHARACTERS, description="The facts to reason from, each with its id as [id]"),
        ] = "",
    ) -> tuple[str, dict[str, Any]]:
        """Think a hard question through, apart from the conversation.

        Use it when facts that you have found must be weighed or combined in several steps. It finds nothing by itself:
        it sees only the task and the notes of this call. Don't use it for look-ups, or for arithmetic where there is a
        tool that computes. What comes back is a thought, no source: cite the ids of the notes, and check them.
        """
        reply = await asked.ask({"task": task, "notes": notes})
        return reply.text, {"usage": reply.usage}

    tool = StructuredTool.from_function(
        coroutine=reason,
        name="reason",
        description=inspect.cleandoc(reason.__doc__ or ""),
        response_format="content_and_artifact",
    )
    return ToolSpec(tool, family="reasoning", side_effect_free=True, timeout_seconds=REASON_SECONDS)
