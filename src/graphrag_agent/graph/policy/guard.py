"""The verdict on every tool call of a round: a pure function of the calls, the state and the budget."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from langchain_core.messages import BaseMessage, ToolMessage

from graphrag_agent.errors import ToolArgumentError
from graphrag_agent.tools.registry import ToolRegistry
from graphrag_agent.tools.spec import ToolSpec

VerdictKind = Literal["run", "reuse", "duplicate", "refuse"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What happens to one call."""

    call: Mapping[str, Any]
    kind: VerdictKind
    fingerprint: str = ""
    """Of a call that runs."""
    error: str = ""
    """Type of the error, of a call that is refused."""
    message: str = ""
    """For the model, of a call that doesn't run."""


def judge_calls(
    calls: Sequence[Mapping[str, Any]],
    tools: ToolRegistry,
    *,
    turn: Sequence[BaseMessage],
    ledger: Mapping[str, str],
    calls_left: int,
    scope_key: str,
) -> list[Verdict]:
    """One verdict a call, in order. `ledger`: fingerprint -> id of the call that ran for it in this turn."""
    results = {message.tool_call_id: message for message in turn if isinstance(message, ToolMessage)}
    batch: dict[str, str] = {}
    verdicts = []
    for call in calls:
        verdict = _judge(call, tools, results, ledger, batch, calls_left - len(batch), scope_key)
        if verdict.kind == "run":
            batch[verdict.fingerprint] = call["id"]
        verdicts.append(verdict)
    return verdicts


def fingerprint(spec: ToolSpec, arguments: Mapping[str, Any], scope_key: str) -> str:
    """The same for calls that mean the same.

    Key order never counts. Blanks, case and Unicode form don't count in a search; elsewhere (code, SQL, a text to send)
    they may mean something.
    """
    meant = _fold(arguments) if spec.family == "search" else arguments
    canonical = json.dumps(meant, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.blake2b(f"{spec.name}\n{canonical}\n{scope_key}".encode(), digest_size=8).hexdigest()


def _judge(
    call: Mapping[str, Any],
    tools: ToolRegistry,
    results: Mapping[str, ToolMessage],
    ledger: Mapping[str, str],
    batch: Mapping[str, str],
    calls_left: int,
    scope_key: str,
) -> Verdict:
    if call.get("type") == "invalid_tool_call":
        return Verdict(
            call, "refuse", error="bad_arguments", message="the arguments are not valid JSON; send them again"
        )
    if call["name"] not in tools:
        known = ", ".join(tools) or "none"
        return Verdict(
            call, "refuse", error="unknown_tool", message=f"there is no tool {call['name']!r}; tools: {known}"
        )
    spec = tools[call["name"]]
    try:
        arguments = spec.validate(call["args"])
    except ToolArgumentError as error:
        return Verdict(call, "refuse", error="bad_arguments", message=str(error))
    mark = fingerprint(spec, arguments, scope_key)
    if mark in batch:
        return Verdict(call, "duplicate", message=f"same call as {batch[mark]} in this round; read its result")
    before = results.get(ledger.get(mark, ""))
    if before is not None and not _may_run_again(before):
        return Verdict(
            call, "reuse", message=f"same call as {before.tool_call_id} earlier in this turn; read its result"
        )
    if calls_left <= 0:
        return Verdict(call, "refuse", error="budget", message="no tool calls are left in this turn; answer now")
    return Verdict(call, "run", fingerprint=mark)


def _may_run_again(result: ToolMessage) -> bool:
    return result.status == "error" and bool((result.artifact or {}).get("retryable"))


def _fold(value: Any) -> Any:
    if isinstance(value, str):
        return " ".join(unicodedata.normalize("NFKC", value).casefold().split())
    if isinstance(value, Mapping):
        return {key: _fold(item) for key, item in value.items()}
    return [_fold(item) for item in value] if isinstance(value, list | tuple) else value
