"""Keeps what tools bring within the tokens that a turn may show the model."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from langchain_core.messages import BaseMessage, ToolMessage

from graphrag_agent.citations import Evidence
from graphrag_agent.models.packing import SEEN_BEHIND, cut_to_sentences
from graphrag_agent.token_estimate import estimate_tokens
from graphrag_agent.tools.evidence_message import READS_ON, hits_of, note_of, read_evidence, render_evidence

RESULT_SHARE = 0.5
"""No single result may take more of the whole budget than this."""

LEFT_OUT = "left_out"
"""Key in a result's artifact: how many of its passages the turn had no room for."""

_CUT = re.compile(
    r"\n\[\d{1,12} of (?P<length>\d{1,12}) characters were left out: the tokens for this turn are spent\]\Z"
)

KEPT_CHARACTERS = 200
"""Of a result for which no room is left: enough to see what it was."""


def tokens_shown(turn: Iterable[BaseMessage]) -> int:
    """Estimated tokens of the turn's results."""
    return sum(estimate_tokens(message.text) for message in turn if isinstance(message, ToolMessage))


def fit_results(results: Sequence[ToolMessage], *, shown: int, limit: int) -> list[ToolMessage]:
    """The results, cut so that with the `shown` tokens of earlier ones they stay within the limit.

    Evidence is left out worst first, the last that fits in part by whole sentences; other text is cut at its end. What
    was left out is said.
    """
    fitted = []
    for result in results:
        room = min(limit - shown, int(limit * RESULT_SHARE))
        if estimate_tokens(result.text[: limit * 4 + KEPT_CHARACTERS]) > room:
            result = _cut_evidence(result, room) if hits_of(result) else _cut_text(result, room)
        shown += estimate_tokens(result.text)
        fitted.append(result)
    return fitted


def has_left_out(message: BaseMessage) -> bool:
    """Whether the result had more passages than it shows."""
    artifact = message.artifact if isinstance(message, ToolMessage) else None
    return isinstance(artifact, Mapping) and bool(artifact.get(LEFT_OUT))


def _cut_evidence(result: ToolMessage, room: int) -> ToolMessage:
    evidence = list(read_evidence([result]).values())
    kept: list[Evidence] = []
    for item in evidence:
        if estimate_tokens(render_evidence([*kept, item])[0]) > room:
            kept += _shortened(item, kept, room)
            break
        kept.append(item)
    left_out, shortened = len(evidence) - len(kept), sum(item.left_out > 0 for item in kept)
    told = f"{left_out} of {len(evidence)} passages were left out: the tokens for this turn are spent."
    note = " ".join(part for part in (note_of(result), told if left_out else "") if part)
    if result.artifact.get(READS_ON):  # its own note tells where the uncut text ends
        start = kept[-1].end if kept else evidence[0].start
        note = f"The tokens for this turn are spent, so this is cut short; what follows it begins at start={start}."
    content, found = render_evidence(kept, note=note)
    artifact = {**result.artifact, **found, **({LEFT_OUT: left_out} if left_out else {})}
    if "trace" in artifact:
        artifact["trace"] = {**artifact["trace"], "over_budget": {"left_out": left_out, "shortened": shortened}}
    return result.model_copy(update={"content": content, "artifact": artifact})


def _shortened(item: Evidence, before: Sequence[Evidence], room: int) -> list[Evidence]:
    """The beginning of the passage in what is left of the room; empty where not a sentence fits."""
    empty = replace(item, text="", left_out=max(item.left_out, 1))
    packed = cut_to_sentences(item.text, room - estimate_tokens(render_evidence([*before, empty])[0]) - 1)
    if not packed.text:
        return []
    left_out = item.left_out + packed.left_out
    # which of its neighbours are still in it nobody knows, so none is counted as shown
    return [replace(item, text=packed.text, end=item.start + len(packed.text), left_out=left_out, merged=())]


def _cut_text(result: ToolMessage, room: int) -> ToolMessage:
    text, length = str(result.text), len(result.text)
    if cut := _CUT.search(text):  # once before, where less of the turn was known
        text, length = text[: cut.start()], int(cut["length"])
        if estimate_tokens(text) <= room:
            return result
    if len(text) <= KEPT_CHARACTERS:
        return result  # so much is kept of any result
    low, high = KEPT_CHARACTERS, min(len(text), max(0, room) * 4)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if estimate_tokens(text[:middle]) <= room else (low, middle - 1)
    sentences = cut_to_sentences(text[: low + SEEN_BEHIND], room).text
    if 2 * len(sentences) > low:  # data and code have no sentences to speak of
        low = len(sentences)
    note = f"[{length - low} of {length} characters were left out: the tokens for this turn are spent]"
    return result.model_copy(update={"content": f"{text[:low]}\n{note}"})
