"""Modes: what a graph is built with for one way of answering, under a name."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from graphrag_agent.context import Budget
from graphrag_agent.errors import SettingsError
from graphrag_agent.graph.prompts.loading import render_prompt
from graphrag_agent.models.composed import ChatModel
from graphrag_agent.tools.research_question import RESEARCH_FAMILY

PROMPTS = ("system", "research")
"""System prompts that the package brings, by the names of their files."""

RESEARCH_BUDGET = Budget(
    max_rounds=12,
    max_tool_calls=60,
    max_seconds=600,
    max_evidence_tokens=32_000,
    stall_limit=3,
    max_family_calls={"research": 6},
)
"""A question of three parts takes some 7 rounds (plan and search, two of figures, criticism, gaps, report), and calls
that were refused take a few more. Six nested turns of 8 calls and 12 calls of its own are 60. Two waves of nested turns
and those rounds are some 200 s where a model call takes 10; a slow model has three times that."""

NESTED_BUDGET = Budget(
    max_rounds=4,
    max_tool_calls=8,
    max_seconds=120,
    max_evidence_tokens=8_000,
    max_history_tokens=0,
    max_recalled_tokens=0,
    history_summary="off",
)
"""One sub-question: two rounds of searches, one to mend them, one to answer. It has no history to show or recall."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mode:
    """A named bundle of model, prompt, tools and budget; what a caller gives beside it goes before."""

    name: str
    prompt: str | Path = "system"
    """System prompt for a model with tools: "system", "research", or the path of a text file of your own."""
    model: ChatModel | str | None = None
    """None: the caller's, or that of the settings."""
    tools: tuple[str, ...] | None = None
    """Names of the tools that are left of those that the graph is given; None: all."""
    built_in: Literal["default", "all"] = "default"
    """Which of the package's tools the graph is given: those that short answers need, or all that can be had."""
    budget: Budget | None = None
    """What a turn may spend; what is not given in it is as in the settings."""
    nested: Budget | None = None
    """What one call of `research_question` may spend, within `budget`; None: there is no such tool."""

    def system_prompt(self) -> str:
        """The text of the prompt. Raises SettingsError where there is no such file."""
        if isinstance(self.prompt, str):
            if self.prompt not in PROMPTS:
                known = ", ".join(map(repr, PROMPTS))
                raise SettingsError(f"mode {self.name!r}: prompt={self.prompt!r} is none of {known}, and no Path")
            return render_prompt(self.prompt)
        try:
            text = self.prompt.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeError) as error:
            raise SettingsError(f"mode {self.name!r}: prompt {str(self.prompt)!r} can't be read: {error}") from None
        if not text:
            raise SettingsError(f"mode {self.name!r}: prompt {str(self.prompt)!r} is empty")
        return text

    def nested_budget(self, budget: Budget) -> Budget | None:
        """What a nested turn may spend where the outer one has this budget: no limit is larger; None for no such turns.

        What `nested` doesn't set is as in the outer budget: the model's window above all.
        """
        if self.nested is None:
            return None
        outer, families = budget.model_dump(), budget.max_family_calls
        own = self.nested.model_dump(include=self.nested.model_fields_set)
        numbers = {name: min(value, outer[name]) for name, value in own.items() if isinstance(value, int | float)}
        calls = {**families, **self.nested.max_family_calls}
        calls = {name: min(most, families.get(name, most)) for name, most in calls.items() if name != RESEARCH_FAMILY}
        return Budget(**{**outer, **own, **numbers, "max_family_calls": calls})

    def check_tools(self, given: Collection[str]) -> None:
        """Raise SettingsError for a tool that the graph isn't given."""
        known = [*given, *(["research_question"] if self.nested else [])]
        if unknown := [name for name in self.tools or () if name not in known]:
            told = f"tools={unknown[0]!r} is unknown; the graph has: {', '.join(known)}"
            raise SettingsError(f"mode {self.name!r}: {told}")


MODES = {
    mode.name: mode
    for mode in (
        Mode(name="rag"),
        Mode(name="research", prompt="research", built_in="all", budget=RESEARCH_BUDGET, nested=NESTED_BUDGET),
    )
}
"""The modes that the package brings."""


def resolve_mode(mode: str | Mode) -> Mode:
    """The mode of that name. Raises SettingsError that names those there are."""
    if isinstance(mode, Mode):
        return mode
    if mode not in MODES:
        raise SettingsError(f"mode={mode!r} is unknown; there is: {', '.join(MODES)}, or a Mode of your own")
    return MODES[mode]
