"""The messages that a model call gets in this round."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage, ToolMessage

from graphrag_agent.call_markup import without_calls
from graphrag_agent.context import Budget
from graphrag_agent.graph.loop import Instructions
from graphrag_agent.graph.policy.pairing import pair_messages, with_sound_calls
from graphrag_agent.graph.prompts.digest import Summary, earlier_turns, summary_tokens
from graphrag_agent.graph.prompts.history import as_dialogue, joined, split_history, tokens_of
from graphrag_agent.graph.prompts.loading import render_prompt
from graphrag_agent.graph.prompts.window import fit_turn, room_in
from graphrag_agent.graph.recall import recalled_text, without_recalled
from graphrag_agent.token_estimate import estimate_tokens
from graphrag_agent.tools.evidence_message import evidence_text
from graphrag_agent.whole_characters import whole_characters

ENDING_REASONS = {
    "max_rounds": "no more rounds are allowed in this turn",
    "max_calls": "no more tool calls are allowed in this turn",
    "max_seconds": "the time for this turn is over",
    "no_new_evidence": "the searches find nothing new",
}


def build_prompt(
    instructions: Instructions,
    history: Sequence[BaseMessage],
    turn: Sequence[BaseMessage],
    limits: Budget,
    *,
    summary: Mapping[str, Any] | None = None,
    schema_tokens: int = 0,
    stop_because: str = "",
    advice: Sequence[str] = (),
) -> list[BaseMessage]:
    """System prompt, the thread's questions and answers, and the running turn, paired as providers demand.

    All of it, with `schema_tokens` for the tools, stays within `limits.max_prompt_tokens` less room for the answer: the
    newest question is whole, then come the turn's results, then as many whole turns as fit. `summary`: the channel.
    `stop_because`: the ending for which this is the last call, without tools. It is said in the system message: a
    message at the end would pass for the question. `advice`: what the model should know before this round; it is added
    to the last tool result, so that all before it stays the same from round to round and a provider's cache holds.
    """
    protocol = instructions.protocol
    if protocol == "one_shot":  # its evidence stands in the system message
        fixed = question_tokens(history) + estimate_tokens(system_text(instructions))
        turn, _ = fit_turn(turn, room_in(limits) - fixed)
    own = without_recalled(turn)
    system = system_text(instructions, turn, own)
    if stop_because:
        system += "\n\n" + render_prompt("summarize", reason=ENDING_REASONS.get(stop_because, stop_because))
    given = recalled_text(turn) if protocol in ("native", "text") else ""
    fixed = schema_tokens + estimate_tokens(system) + estimate_tokens(given) + question_tokens(history)
    shown, left = fit_turn(own if protocol in ("native", "text") else (), room_in(limits) - fixed)
    recent, note = _history(history, summary, limits, left)
    messages = [_sendable(message) for message in pair_messages([*recent, *shown])]
    messages = with_sound_calls(messages) if protocol == "native" else messages
    return [SystemMessage(system + note), *_with_advice(_with_evidence(messages, given), advice)]


def _sendable(message: BaseMessage) -> BaseMessage:
    """The message in whole characters; that of a user or tool with no tool call, which a quote of it would run.

    The same object where nothing is wrong with it.
    """
    mend = _without_calls if isinstance(message, HumanMessage | ToolMessage) else whole_characters
    content = message.content
    if isinstance(content, str):
        mended: Any = mend(content)
    else:
        mended = [_mended(block, mend) for block in content]
    return message if mended == content else message.model_copy(update={"content": mended})


def _without_calls(text: str) -> str:
    return without_calls(whole_characters(text))


def _mended(block: str | dict[str, Any], mend: Callable[[str], str]) -> str | dict[str, Any]:
    if isinstance(block, str):
        return mend(block)
    return {**block, "text": mend(block["text"])} if isinstance(block.get("text"), str) else block


def system_text(instructions: Instructions, turn: Sequence[BaseMessage] = (), own: Sequence[BaseMessage] = ()) -> str:
    """The system prompt of the protocol. `own`: the turn without earlier evidence, whose evidence comes first."""
    if instructions.protocol in ("native", "text"):
        return instructions.system or render_prompt("system")
    if instructions.protocol == "none":
        return render_prompt("no_retrieval")
    return render_prompt("one_shot", evidence=evidence_text([*own, *turn]) or "(nothing was found)")


def question_tokens(history: Sequence[BaseMessage]) -> int:
    """Estimated tokens of the newest question, which is never cut."""
    return sum(map(tokens_of, split_history(history, -1).recent))


def _history(
    history: Sequence[BaseMessage], channel: Mapping[str, Any] | None, limits: Budget, left: int
) -> tuple[list[BaseMessage], str]:
    """The turns to show, with the older ones in short where that is wanted, and what to say of those left out."""
    limit = min(limits.max_history_tokens, left)
    recent, left_out = split_history(history, limit)
    if not left_out:
        return as_dialogue(recent), ""
    earlier: list[BaseMessage] = []
    if (most := min(summary_tokens(limits), limit)) > 0:
        recent, left_out = split_history(history, limit - most)
        earlier = earlier_turns(history, left_out, Summary.of(channel, history), most)
    return [*earlier, *as_dialogue(recent)], "" if earlier else "\n\n" + render_prompt("earlier_left_out")


def _with_evidence(messages: list[BaseMessage], given: str) -> list[BaseMessage]:
    """The messages with earlier evidence behind the question: a message of its own would stand unpaired."""
    asked = max((at for at, message in enumerate(messages) if isinstance(message, HumanMessage)), default=None)
    if not given or asked is None:
        return messages
    question = messages[asked]
    asking = question.model_copy(update={"content": joined(question.content, given)})
    return [*messages[:asked], asking, *messages[asked + 1 :]]


def _with_advice(messages: list[BaseMessage], advice: Sequence[str]) -> list[BaseMessage]:
    if not (advice and messages and isinstance(last := messages[-1], ToolMessage)):
        return messages
    told = f"{last.text}\n\n[{' '.join(advice)}]"
    return [*messages[:-1], last.model_copy(update={"content": told})]
