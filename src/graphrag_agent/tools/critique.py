"""The tool that checks a draft with a model of its own."""

from __future__ import annotations

import inspect
import re
from typing import Annotated, Any

from langchain_core.tools import StructuredTool
from pydantic import Field

from graphrag_agent.models.asking import GivenModel
from graphrag_agent.tools._own_model import PromptedModel
from graphrag_agent.tools.reason import MAX_NOTES_CHARACTERS, MAX_TASK_CHARACTERS, REASON_SECONDS
from graphrag_agent.tools.spec import ToolSpec

MAX_FINDINGS = 8
"""More than a writer mends at once; the prompt asks for the most serious first."""

MAX_FINDING_CHARACTERS = 400

_KINDS = ("unsupported", "missing", "contradiction")
_FINDING = re.compile(rf"^[\s\d.)*#•–-]*({'|'.join(_KINDS)})[*\s]*[:：][*\s]*(.+)$", re.IGNORECASE)
_NONE = re.compile(r"^\W*none\W*$", re.IGNORECASE)


def build_critique(model: GivenModel) -> ToolSpec:
    """A `critique` that asks this model, which sees nothing but question, draft and notes.

    The artifact has the `findings`, each with its `kind` and `text`, and the tokens of the call as `usage`. With the
    offline model each call is refused.
    """
    asked = PromptedModel(model, "critique", findings=str(MAX_FINDINGS))

    async def critique(
        question: Annotated[
            str, Field(min_length=1, max_length=MAX_TASK_CHARACTERS, description="The question that the draft answers")
        ],
        draft: Annotated[
            str,
            Field(min_length=1, max_length=MAX_NOTES_CHARACTERS, description="The whole answer as it would go out"),
        ],
        notes: Annotated[
            str,
            Field(max_length=MAX_NOTES_CHARACTERS, description="The evidence for it, each with its id as [id]"),
        ] = "",
    ) -> tuple[str, dict[str, Any]]:
        """Check the draft of a long answer before it is sent: what is unsupported, missing or contradicts itself.

        Use it once, when the draft is complete, and mend what it finds. It sees only this call. Don't use it for short
        answers, or again on the same draft. What comes back is an opinion, no source: never cite it.
        """
        reply = await asked.ask({"question": question, "draft": draft, "notes": notes})
        findings = parse_findings(reply.text)
        lines = [f"{number}. {item['kind']}: {item['text']}" for number, item in enumerate(findings, start=1)]
        return "\n".join(lines) or "No findings.", {"findings": findings, "usage": reply.usage}

    tool = StructuredTool.from_function(
        coroutine=critique,
        name="critique",
        description=inspect.cleandoc(critique.__doc__ or ""),
        response_format="content_and_artifact",
    )
    return ToolSpec(tool, family="reasoning", side_effect_free=True, timeout_seconds=REASON_SECONDS)


def parse_findings(text: str) -> list[dict[str, str]]:
    """The findings of a reply, one a line; a reply in another form is one finding of the kind `other`."""
    found = [match for line in text.splitlines() if (match := _FINDING.match(line))]
    if found:
        return [_finding(match[1].lower(), match[2]) for match in found[:MAX_FINDINGS]]
    if any(_NONE.match(line) for line in text.splitlines()):
        return []
    return [_finding("other", " ".join(text.split()))]


def _finding(kind: str, text: str) -> dict[str, str]:
    text = text.strip()
    return {
        "kind": kind,
        "text": text if len(text) <= MAX_FINDING_CHARACTERS else f"{text[: MAX_FINDING_CHARACTERS - 1]}…",
    }
