"""Keeps what tools bring within the tokens that a turn may show the model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from langchain_core.messages import BaseMessage, ToolMessage

from graphrag_agent.citations import Evidence
from graphrag_agent.token_estimate import estimate_tokens
from graphrag_agent.tools.evidence_message import hits_of, read_evidence, render_evidence

RESULT_SHARE = 0.5
"""No single result may take more of the whole budget than this."""

KEPT_CHARACTERS = 200
"""Of a result for which no room is left: enough to see what it was."""


def tokens_shown(turn: Iterable[BaseMessage]) -> int:
    """Estimated tokens of the turn's results."""
    return sum(estimate_tokens(message.text) for message in turn if isinstance(message, ToolMessage))


def fit_results(results: Sequence[ToolMessage], *, shown: int, limit: int) -> list[ToolMessage]:
    """The results, cut so that with the `shown` tokens of earlier ones they stay within the limit.

    Evidence is left out by whole passages, worst first; other text is cut at its end. What was left out is said.
    """
    fitted = []
    for result in results:
        room = min(limit - shown, int(limit * RESULT_SHARE))
        if estimate_tokens(result.text[: limit * 4 + KEPT_CHARACTERS]) > room:
            result = _cut_evidence(result, room) if hits_of(result) else _cut_text(result, room)
        shown += estimate_tokens(result.text)
        fitted.append(result)
    return fitted


def _cut_evidence(result: ToolMessage, room: int) -> ToolMessage:
    evidence = list(read_evidence([result]).values())
    kept: list[Evidence] = []
    for item in evidence:
        if estimate_tokens(render_evidence([*kept, item])[0]) > room:
            break
        kept.append(item)
    left_out = len(evidence) - len(kept)
    note = f"{left_out} of {len(evidence)} passages were left out: the tokens for this turn are spent."
    content, artifact = render_evidence(kept, note=note)
    return result.model_copy(update={"content": content, "artifact": artifact})


def _cut_text(result: ToolMessage, room: int) -> ToolMessage:
    text = result.text
    low, high = KEPT_CHARACTERS, min(len(text), max(0, room) * 4)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if estimate_tokens(text[:middle]) <= room else (low, middle - 1)
    note = f"[{len(text) - low} of {len(text)} characters were left out: the tokens for this turn are spent]"
    return result.model_copy(update={"content": f"{text[:low]}\n{note}"})
