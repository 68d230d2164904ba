"""Limits of one turn that a budget and the settings have in common."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field


class TurnLimits(BaseModel):
    """What one turn may spend, and how it deals with long threads and uncited answers."""

    max_rounds: int = Field(default=6, ge=1, le=50, description="Model calls with tools in one turn")
    max_tool_calls: int = Field(default=20, ge=1, le=500, description="Tool calls that may run in one turn")
    max_seconds: float = Field(
        default=120.0, gt=0, le=86_400, description="Seconds that a turn may take; what runs then is stopped"
    )
    max_evidence_tokens: int = Field(
        default=16_000, ge=100, le=1_000_000, description="Tokens of tool results that one turn may show the model"
    )
    max_history_tokens: int = Field(
        default=8_000, ge=0, le=1_000_000, description="Tokens of earlier questions and answers shown to the model"
    )
    max_recalled_tokens: int = Field(
        default=1_500,
        ge=0,
        le=1_000_000,
        description="Tokens of evidence cited in earlier turns to be given again; 0: none",
    )
    max_prompt_tokens: int = Field(
        default=128_000,
        ge=1_000,
        le=10_000_000,
        description="Tokens of a prompt and its answer; less where the model's own window is smaller",
    )
    history_summary: Literal["off", "extract", "model"] = Field(
        default="extract",
        description="Turns too old to be shown: off: left out; extract: a line each; model: summed up by the model",
    )
    citation_policy: Literal["ask_once", "record", "off"] = Field(
        default="ask_once",
        description="Answers from evidence that name none: ask_once: the model is asked once more; record: the outcome "
        "says so; off: nothing",
    )
    stall_limit: int = Field(
        default=2, ge=1, le=50, description="Rounds in a row that may search without finding anything new"
    )
