"""The agent over HTTP. Loaded when first used, since it needs the extra `server`."""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from graphrag_agent.errors import MissingExtraError

if TYPE_CHECKING:
    from graphrag_agent.server.app import create_app
    from graphrag_agent.server.limits import Limits
    from graphrag_agent.server.running import serve
    from graphrag_agent.server.tokens import BearerTokens

_HOME = {"BearerTokens": "tokens", "Limits": "limits", "create_app": "app", "serve": "running"}

__all__ = ["BearerTokens", "Limits", "create_app", "serve"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if find_spec("fastapi") is None:
        raise MissingExtraError("the HTTP app", "server")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
