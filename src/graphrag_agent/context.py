"""What a caller may say about one run (`AgentContext`), and what a turn may spend (`Budget`)."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from graphrag_agent.turn_limits import TurnLimits

TOP_K_MAX = 20
"""Most hits that one search gives the model."""


class Budget(TurnLimits):
    """What one turn may spend. Checked before a call starts, never after."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_family_calls: dict[str, int] = Field(
        default_factory=dict, description="Tool calls of one family, such as search, that may run in one turn"
    )


class AgentContext(BaseModel):
    """Options of one run, given by the client. They narrow what the graph was built with, never widen it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    collections: tuple[str, ...] | None = Field(default=None, description="Search only these collections")
    document_ids: tuple[str, ...] | None = Field(default=None, description="Search only these documents")
    source_types: tuple[str, ...] | None = Field(default=None, description="Search only these formats, e.g. md, pdf")
    top_k: int | None = Field(default=None, ge=1, le=TOP_K_MAX, description="Most hits that one search may return")
    strategy: Literal["direct", "multi_query", "hyde"] | None = Field(
        default=None,
        description="direct: search the query alone; multi_query: its parts and other wordings too; hyde: a passage "
        "that would answer it",
    )
    rerank: bool | None = Field(default=None, description="false: leave out the reranker; true changes nothing")
    tools: tuple[str, ...] | None = Field(default=None, description="Offer the model only these tools")
    max_history_tokens: int | None = Field(
        default=None, ge=0, le=1_000_000, description="Tokens of earlier questions and answers shown to the model"
    )
    max_recalled_tokens: int | None = Field(
        default=None,
        ge=0,
        le=1_000_000,
        description="Tokens of evidence cited in earlier turns to be given again; 0: none",
    )
    client_tools: tuple[dict[str, Any], ...] = Field(
        default=(), max_length=64, description="Tools that the client runs, as OpenAI function schemas"
    )
    retrieval: Literal["auto", "one_shot", "none"] = Field(
        default="auto",
        description="auto: the model decides when to search; one_shot: one search before the model speaks; "
        "none: no search",
    )
    max_rounds: int | None = Field(default=None, ge=1, le=50, description="Model calls with tools in this turn")
    max_tool_calls: int | None = Field(default=None, ge=1, le=500, description="Tool calls that may run in this turn")
    max_seconds: float | None = Field(default=None, gt=0, le=86_400, description="Seconds that this turn may take")
    max_evidence_tokens: int | None = Field(
        default=None, ge=100, le=1_000_000, description="Tokens of tool results that this turn may show the model"
    )
    parallel_tool_calls: bool = Field(default=True, description="Run the calls of a round side by side")
    locale: str | None = Field(
        default=None,
        pattern=r"^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$",
        description="Language of what the agent says itself where the model gives no answer: en, ru or zh; "
        "default: the question's",
    )

    def narrow(self, budget: Budget) -> Budget:
        """The smaller of the budget's and this run's limits, field by field."""
        asked = {name: getattr(self, name, None) for name in Budget.model_fields}
        limits = {name: min(getattr(budget, name), value) for name, value in asked.items() if value is not None}
        return budget.model_copy(update=limits) if limits else budget
