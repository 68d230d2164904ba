"""The messages that a model call gets in this round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from graphrag_agent.context import Budget
from graphrag_agent.graph.loop import Protocol
from graphrag_agent.graph.policy.pairing import pair_messages
from graphrag_agent.graph.prompts.loading import render_prompt
from graphrag_agent.token_estimate import estimate_tokens
from graphrag_agent.tools.evidence_message import evidence_text

Content = str | list[str | dict[Any, Any]]

CANCELLED = "cancelled"
"""Key in a question's additional_kwargs: its turn was cut off before it had an answer."""

ENDING_REASONS = {
    "max_rounds": "no more rounds are allowed in this turn",
    "max_calls": "no more tool calls are allowed in this turn",
    "max_seconds": "the time for this turn is over",
    "no_new_evidence": "the searches find nothing new",
}


def build_prompt(
    protocol: Protocol,
    history: Sequence[BaseMessage],
    turn: Sequence[BaseMessage],
    limits: Budget,
    *,
    stop_because: str = "",
    advice: Sequence[str] = (),
) -> list[BaseMessage]:
    """System prompt, the thread's questions and answers, and the running turn, paired as providers demand.

    `stop_because`: the ending for which this is the last call, without tools. It is said in the system message: a
    message at the end would pass for the question. `advice`: what the model should know before this round; it is added
    to the last tool result, so that all before it stays the same from round to round and a provider's cache holds.
    """
    if protocol in ("native", "text"):
        system, shown = render_prompt("system"), turn
    elif protocol == "one_shot":
        system, shown = render_prompt("one_shot", evidence=evidence_text(turn) or "(nothing was found)"), ()
    else:
        system, shown = render_prompt("no_retrieval"), ()
    if stop_because:
        system += "\n\n" + render_prompt("summarize", reason=ENDING_REASONS.get(stop_because, stop_because))
    recent = recent_turns(history, limits.max_history_tokens)
    if len(recent) < len(history):
        system += "\n\n" + render_prompt("earlier_left_out")
    return [SystemMessage(system), *_with_advice(pair_messages([*_dialogue(recent), *shown]), advice)]


def recent_turns(history: Sequence[BaseMessage], limit: int) -> Sequence[BaseMessage]:
    """The newest question, and before it as many whole turns as fit the tokens."""
    starts = [at for at, message in enumerate(history) if isinstance(message, HumanMessage)]
    if not starts:
        return history
    begin, left = starts[-1], limit
    for start in reversed(starts[:-1]):
        left -= sum(_tokens(message) for message in history[start:begin])
        if left < 0:
            break
        begin = start
    return history[begin:] if begin > starts[0] else history


def _tokens(message: BaseMessage) -> int:
    return estimate_tokens(message.content if isinstance(message.content, str) else message.text)


def _with_advice(messages: list[BaseMessage], advice: Sequence[str]) -> list[BaseMessage]:
    if not (advice and messages and isinstance(last := messages[-1], ToolMessage)):
        return messages
    told = f"{last.text}\n\n[{' '.join(advice)}]"
    return [*messages[:-1], last.model_copy(update={"content": told})]


def _dialogue(history: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Questions and answers in turn: some chat templates refuse two human messages in a row."""
    dialogue: list[BaseMessage] = []
    for message in history:
        previous = dialogue[-1] if dialogue else None
        if isinstance(message, HumanMessage) and isinstance(previous, HumanMessage):
            if previous.additional_kwargs.get("ending") == CANCELLED:
                dialogue.append(AIMessage("(This question got no answer: its turn was cut off.)"))
            else:
                dialogue[-1] = message.model_copy(update={"content": _joined(previous.content, message.content)})
                continue
        dialogue.append(message)
    return dialogue


def _joined(first: Content, second: Content) -> Content:
    if isinstance(first, str) and isinstance(second, str):
        return f"{first}\n\n{second}"
    return [*([first] if isinstance(first, str) else first), *([second] if isinstance(second, str) else second)]
