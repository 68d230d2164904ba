"""Chat models that stand in a composition of LangChain's: with fallbacks, with retries, with options bound to them.

`ChatOpenAI(...).with_fallbacks([...])` is no chat model by type, though it answers like one. What the loop does to a
chat model (binding tools, calls as text) is done to each one inside, so that the composition stays what it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable, RunnableWithFallbacks
from langchain_core.runnables.base import RunnableBindingBase

from graphrag_agent.errors import SettingsError

ChatModel: TypeAlias = BaseChatModel | Runnable[Any, Any]
"""A chat model, or a composition of some; `check_chat_model` tells it from other runnables."""

_TOOLS = ("tools", "functions")
_REMEDY = (
    "give a LangChain chat model, a name such as 'openai:NAME', or a chat model with .with_fallbacks([...]), "
    ".with_retry() or .bind(...)"
)


def check_chat_model(model: object) -> None:
    """Raise SettingsError for what is no chat model and no composition of some, or has tools bound to it already."""
    for _ in chat_models_in(model):
        pass


def chat_models_in(model: object) -> Iterator[BaseChatModel]:
    """The chat models of a composition, in the order in which they are asked. Raises SettingsError."""
    if isinstance(model, RunnableWithFallbacks):
        for one in model.runnables:
            yield from chat_models_in(one)
    elif isinstance(model, RunnableBindingBase):
        if bound := [name for name in _TOOLS if name in model.kwargs]:
            told = f"model: {bound[0]} are bound to it already; the agent binds its own: give yours as tools=[...]"
            raise SettingsError(told)
        yield from chat_models_in(model.bound)
    elif _is_chat_model(model):
        yield model  # type: ignore[misc]
    else:
        given = f"the class {model.__name__}" if isinstance(model, type) else f"a {type(model).__name__}"
        raise SettingsError(f"model: {given} is no chat model; {_REMEDY}")


def with_each(model: ChatModel, change: Callable[[BaseChatModel], Runnable[Any, Any]]) -> Runnable[Any, Any]:
    """The same composition of changed chat models."""
    if isinstance(model, RunnableWithFallbacks):
        first, *others = (with_each(one, change) for one in model.runnables)
        return model.model_copy(update={"runnable": first, "fallbacks": others})
    if isinstance(model, RunnableBindingBase):
        return model.model_copy(update={"bound": with_each(model.bound, change)})
    return change(model)  # type: ignore[arg-type]


def takes_tools(model: ChatModel) -> bool:
    """Whether every chat model inside takes tools of its own; one that does not say so is to be tried."""
    return all(_takes_tools(one) for one in chat_models_in(model))


def smallest_window(model: ChatModel) -> int | None:
    """Tokens that a prompt may have for every chat model inside, as far as they tell."""
    windows = [(_profile(one) or {}).get("max_input_tokens") for one in chat_models_in(model)]
    return min((window for window in windows if window), default=None)


def _takes_tools(model: BaseChatModel) -> bool:
    if (_profile(model) or {}).get("tool_calling") is False:
        return False
    return type(model).bind_tools is not BaseChatModel.bind_tools


def _profile(model: BaseChatModel) -> Any:
    return getattr(model, "profile", None)


def _is_chat_model(model: object) -> bool:
    """Also of `init_chat_model` with a model that is chosen at each call: it is none by type."""
    if isinstance(model, BaseChatModel):
        return True
    return isinstance(model, Runnable) and callable(getattr(type(model), "bind_tools", None))
