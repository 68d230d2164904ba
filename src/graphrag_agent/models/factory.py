"""Chat models by name: `load_chat_model`."""

from __future__ import annotations

import importlib.util
from typing import Any

from langchain_core.language_models import BaseChatModel

from graphrag_agent.errors import ModelUnavailableError
from graphrag_agent.models.composed import ChatModel, check_chat_model
from graphrag_agent.models.extractive import ExtractiveChatModel
from graphrag_agent.models.openai_compatible import build_openai_model
from graphrag_agent.settings import OFFLINE

POSSIBLE = "'offline', 'openai:NAME', or 'provider:NAME' where langchain and the provider's package are installed"


def load_chat_model(name: str, **options: Any) -> BaseChatModel:
    """The chat model of that name, built with the options. Raises ModelUnavailableError that says what is possible."""
    if name == OFFLINE:
        return ExtractiveChatModel(**options)
    provider, _, model = (part.strip() for part in name.partition(":"))
    if not provider or not model:
        raise ModelUnavailableError(f"unknown model {name!r}; possible: {POSSIBLE}")
    if provider == "openai":
        return build_openai_model(model, **options)
    return _load_with_langchain(provider, model, options)


def resolve_chat_model(model: ChatModel | str) -> ChatModel:
    """The chat model that is given, or that of the name. Raises SettingsError for what is none."""
    if isinstance(model, str):
        return load_chat_model(model)
    check_chat_model(model)
    return model


def _load_with_langchain(provider: str, model: str, options: dict[str, Any]) -> BaseChatModel:
    if importlib.util.find_spec("langchain") is None:
        raise ModelUnavailableError(
            f"model '{provider}:{model}' needs langchain and the provider's package: "
            f"pip install langchain langchain-{provider}"
        )
    from langchain.chat_models import init_chat_model

    try:
        built: BaseChatModel = init_chat_model(model, model_provider=provider, **options)
    except (ImportError, ValueError) as error:  # no such package; no such provider, or its key is missing
        raise ModelUnavailableError(f"model '{provider}:{model}': {error}") from error
    return built
