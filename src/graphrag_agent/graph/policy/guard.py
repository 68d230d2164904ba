"""The verdict on every tool call of a round: a pure function of the calls, the turn and the budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from langchain_core.messages import BaseMessage, ToolMessage

from graphrag_agent.errors import ToolArgumentError
from graphrag_agent.graph.policy.fingerprints import call_mark, search_mark
from graphrag_agent.graph.policy.pairing import calls_of
from graphrag_agent.tools.evidence_message import chunk_ids_of
from graphrag_agent.tools.registry import ToolRegistry
from graphrag_agent.tools.spec import ToolSpec

VerdictKind = Literal["run", "client", "reuse", "duplicate", "refuse"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What happens to one call."""

    call: Mapping[str, Any]
    kind: VerdictKind
    mark: str = ""
    """Of a call that runs: under this the ledger knows it."""
    error: str = ""
    """Type of the error, of a call that is refused."""
    message: str = ""
    """For the model, of a call that doesn't run."""

    @property
    def runs(self) -> bool:
        """Whether the call runs, here or at the client."""
        return self.kind in ("run", "client")


@dataclass(frozen=True)
class GuardRules:
    """What the verdicts of one round depend on."""

    tools: ToolRegistry
    turn: Sequence[BaseMessage] = ()
    ledger: Mapping[str, str] = field(default_factory=dict)
    """Mark of a call -> id of the call that ran for it in this turn."""
    calls_left: int = 1
    family_calls_left: Mapping[str, int] = field(default_factory=dict)
    """For the families that have a cap."""
    closed_families: Mapping[str, str] = field(default_factory=dict)
    """Family -> why no call of it may run any more."""
    is_stalled: bool = False
    """The last rounds of searches found nothing new."""
    scope_key: str = ""
    """The same words under another scope are another call."""

    @cached_property
    def results(self) -> dict[str, ToolMessage]:
        """Call id -> its result."""
        return {message.tool_call_id: message for message in self.turn if isinstance(message, ToolMessage)}

    @cached_property
    def asked(self) -> dict[str, dict[str, Any]]:
        """Call id -> the call."""
        return {call["id"]: call for message in self.turn for call in calls_of(message)}

    @cached_property
    def known(self) -> dict[str, _Known]:
        """Call id -> what the call is compared by, for calls of this turn and round that were compared already."""
        return {}


def judge_calls(calls: Sequence[Mapping[str, Any]], rules: GuardRules) -> list[Verdict]:
    """One verdict a call, in order; a call is judged in the light of those before it."""
    verdicts: list[Verdict] = []
    for call in calls:
        verdicts.append(_judge(call, rules, [verdict for verdict in verdicts if verdict.runs]))
    return verdicts


def _judge(call: Mapping[str, Any], rules: GuardRules, running: Sequence[Verdict]) -> Verdict:
    if call.get("type") == "invalid_tool_call":
        # a call written as text that can't be read has no name, and its reason in its arguments
        unread = f"this call can't be read: {str(call['args'])[:200]}" if call["name"] == "?" else ""
        reason = call.get("error") or unread or "the arguments are not valid JSON; send them again"
        return Verdict(call, "refuse", error="bad_arguments", message=reason)
    if call["name"] not in rules.tools:
        told = f"there is no tool {call['name']!r}; tools: {', '.join(rules.tools) or 'none'}"
        return Verdict(call, "refuse", error="unknown_tool", message=told)
    spec = rules.tools[call["name"]]
    try:
        arguments = spec.validate(call["args"])
    except ToolArgumentError as error:
        return Verdict(call, "refuse", error="bad_arguments", message=str(error))
    known = rules.known[call["id"]] = _Known.of(call, rules, arguments)
    return (
        _duplicate(known, running, rules)
        or _reuse(known, rules)
        or _over_budget(call, spec, rules, running)
        or Verdict(call, "client" if spec.runtime == "client" else "run", mark=known.exact)
    )


@dataclass(frozen=True, slots=True)
class _Known:
    """A call with what it is compared by."""

    call: Mapping[str, Any]
    exact: str
    near: str
    top_k: int

    @classmethod
    def of(cls, call: Mapping[str, Any], rules: GuardRules, arguments: Mapping[str, Any] | None = None) -> _Known:
        """The call, whose arguments are sound."""
        spec = rules.tools[call["name"]]
        arguments = spec.validate(call["args"]) if arguments is None else arguments
        near = search_mark(spec, arguments, rules.scope_key)
        return cls(call, call_mark(spec, arguments, rules.scope_key), near, _hits_wanted(arguments) if near else 0)

    def is_same(self, other: _Known) -> bool:
        """Whether the other call, made at the same time, brings all that this one would."""
        return self.exact == other.exact or (bool(self.near) and self.near == other.near and self.top_k <= other.top_k)


def _hits_wanted(arguments: Mapping[str, Any]) -> int:
    """How many hits a search asks for; 0 where its `top_k` is no number, as a user's tool may have it."""
    top_k = arguments.get("top_k")
    return top_k if isinstance(top_k, int) and not isinstance(top_k, bool) else 0


def _known(call: Mapping[str, Any], rules: GuardRules) -> _Known:
    found = rules.known.get(call["id"])
    if found is None or found.call is not call:  # an id may be used twice in a message
        found = rules.known[call["id"]] = _Known.of(call, rules)
    return found


def _duplicate(known: _Known, running: Sequence[Verdict], rules: GuardRules) -> Verdict | None:
    for other in running:
        if known.is_same(_known(other.call, rules)):
            told = f"same call as {other.call['id']} in this round; read its result"
            return Verdict(known.call, "duplicate", message=told)
    return None


def _reuse(known: _Known, rules: GuardRules) -> Verdict | None:
    exact = rules.results.get(rules.ledger.get(known.exact, ""))
    if exact is not None:
        is_worth_a_try = exact.status == "error" and (exact.artifact or {}).get("retryable")
        return None if is_worth_a_try else _pointing(known.call, exact)
    if not known.near:
        return None
    for id_, result in rules.results.items():
        earlier = rules.asked.get(id_)
        if earlier is None or result.status == "error" or earlier["name"] != known.call["name"]:
            continue
        other = _known(earlier, rules)
        # only calls of the ledger count: they ran under this very scope
        if (
            other.near == known.near
            and rules.ledger.get(other.exact) == id_
            and not _may_bring_more(known, other, result)
        ):
            return _pointing(known.call, result)
    return None


def _pointing(call: Mapping[str, Any], result: ToolMessage) -> Verdict:
    return Verdict(call, "reuse", message=f"same call as {result.tool_call_id} earlier in this turn; read its result")


def _may_bring_more(known: _Known, earlier: _Known, result: ToolMessage) -> bool:
    """Whether a nearly identical search can bring new evidence: it asks for more, and there was more to give."""
    return known.top_k > earlier.top_k and len(chunk_ids_of(result)) >= earlier.top_k


def _over_budget(
    call: Mapping[str, Any], spec: ToolSpec, rules: GuardRules, running: Sequence[Verdict]
) -> Verdict | None:
    if spec.family in rules.closed_families:
        return Verdict(call, "refuse", error="closed", message=rules.closed_families[spec.family])
    if len(running) >= rules.calls_left:
        return Verdict(call, "refuse", error="budget", message="no tool calls are left in this turn; answer now")
    of_family = sum(rules.tools[other.call["name"]].family == spec.family for other in running)
    if of_family >= rules.family_calls_left.get(spec.family, of_family + 1):
        told = f"no {spec.family} calls are left in this turn; answer now or use another tool"
        return Verdict(call, "refuse", error="budget", message=told)
    return None
