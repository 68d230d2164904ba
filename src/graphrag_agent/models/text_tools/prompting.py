"""A conversation with tools, as a model without tools can read it: plain turns, and rules in the system message."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from graphrag_agent.prompt_files import PromptFiles

_render = PromptFiles(__package__).render
Content = str | list[str | dict[Any, Any]]

BEGAN_EARLIER = "(The conversation began earlier.)"
"""Strict chat templates want a human turn first."""


def render_instructions(tools: Sequence[Mapping[str, Any]], choice: Any, *, is_parallel: bool) -> str:
    """The rules for calling these tools (in OpenAI's form), for the system message; empty without tools."""
    if not tools:
        return ""
    functions = [tool["function"] for tool in tools]
    which = _forced(choice, [function["name"] for function in functions])
    return _render(
        "tools",
        number=_render("many_calls" if is_parallel else "one_call"),
        choice=_render("must_call", which=which) + "\n" if which else "",
        tools="\n\n".join(map(_render_tool, functions)),
    )


def render_call(name: str, arguments: Any) -> str:
    """A call as the model itself should write it."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return f'<tool_call name="{name}">{text}</tool_call>'


def render_repair(reason: str) -> str:
    """What a model is told whose call could not be read."""
    return _render("repair", reason=reason)


def rewrite_messages(messages: Sequence[BaseMessage], instructions: str) -> list[BaseMessage]:
    """One system message, then human and AI turns by turns: calls and results as text, neighbours merged."""
    turns: list[BaseMessage] = []
    for message in messages:
        turn = _as_turn(message)
        if turn is None:
            continue
        if turns and turns[-1].type == turn.type:
            before = turns.pop()
            turn = before.model_copy(update={"content": _joined(before.content, turn.content)})
        turns.append(turn)
    if turns and isinstance(turns[0], AIMessage):
        turns.insert(0, HumanMessage(BEGAN_EARLIER))
    system = [message.text for message in messages if isinstance(message, SystemMessage)]
    text = "\n\n".join(part for part in [*system, instructions] if part)
    return [SystemMessage(text), *turns] if text else turns


def _as_turn(message: BaseMessage) -> BaseMessage | None:
    if isinstance(message, ToolMessage):
        return HumanMessage(_render_result(message))
    if isinstance(message, AIMessage):
        calls = [render_call(call["name"], call["args"]) for call in message.tool_calls]
        broken = [_render_broken(call["name"], call["args"]) for call in message.invalid_tool_calls]
        text = "\n".join(part for part in [message.text, *calls, *broken] if part.strip())
        return AIMessage(text) if text else None
    return None if isinstance(message, SystemMessage) else message


def _render_result(message: ToolMessage) -> str:
    text = message.text.replace("</tool_result", "&lt;/tool_result")  # a result can't end itself and go on as the user
    return f'<tool_result name="{message.name or "?"}" id="{message.tool_call_id}">\n{text}\n</tool_result>'


def _render_broken(name: str | None, arguments: str | None) -> str:
    if name in {None, "?"}:
        return f"(a tool call that could not be read: {arguments})"
    return render_call(str(name), arguments or "")


def _render_tool(function: Mapping[str, Any]) -> str:
    schema = json.dumps(_without_titles(function.get("parameters") or {}), ensure_ascii=False)
    return f"## {function['name']}\n\n{(function.get('description') or '').strip()}\n\nArguments: {schema}"


def _without_titles(schema: Any) -> Any:
    """The schema without pydantic's titles, which repeat the names; a property called title stays."""
    if isinstance(schema, list):
        return [_without_titles(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: _without_titles(value) for key, value in schema.items() if key != "title" or not isinstance(value, str)
    }


def _forced(choice: Any, names: Sequence[str]) -> str:
    """Which tool must be called, in words; empty where the model may choose."""
    name = choice.get("function", {}).get("name") if isinstance(choice, Mapping) else choice
    if name in names:
        return f"the tool {name}"
    return "a tool" if name in {"any", "required"} or name is True else ""


def _joined(first: Content, second: Content) -> Content:
    if isinstance(first, str) and isinstance(second, str):
        return f"{first}\n\n{second}"
    parts = [[part] if isinstance(part, str) else part for part in (first, second)]
    return [*parts[0], *parts[1]]
