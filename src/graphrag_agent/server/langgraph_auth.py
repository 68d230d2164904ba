"""Who asks on a LangGraph server: bearer tokens become its users, and each sees what is theirs.

Named in the server's configuration by `auth.path` (langgraph.auth.json). A run's principal is made from the user alone
(`graph/loop.py`): what a client sends as configurable, context or metadata counts for nothing.
"""

from __future__ import annotations

import hashlib
import inspect
from typing import Any, cast

from langgraph_sdk import Auth

from graphrag_agent.errors import SettingsError
from graphrag_agent.graph.loop import principal_of
from graphrag_agent.identity import OWNER_KEY, Principal, owner_of
from graphrag_agent.server.tokens import Authenticate, BearerTokens, bearer_of
from graphrag_agent.settings import Settings

WRITES = ("create", "update", "create_run")
SHOWN_ASSISTANTS = ("read", "search")


def auth_from(settings: Settings) -> Auth:
    """Auth by the tokens of the settings. Raises SettingsError where they name none."""
    if not settings.tokens:
        raise SettingsError(
            "auth needs GRAPHRAG_TOKENS: the file of bearer tokens (docs/http.md); or use langgraph.json"
        )
    return build_auth(BearerTokens.load(settings.tokens))


def build_auth(authenticate: Authenticate) -> Auth:
    """Auth by this hook. What is not allowed below is refused."""
    auth = Auth()

    @auth.authenticate
    async def user_of(authorization: str | None) -> Auth.types.MinimalUserDict:
        token = bearer_of(authorization)
        found = authenticate(token) if token else None
        principal = await found if inspect.isawaitable(found) else found
        if principal is None:
            raise Auth.exceptions.HTTPException(status_code=401, detail="the bearer token is missing or unknown")
        return user_from(principal)

    @auth.on
    async def refuse(ctx: Auth.types.AuthContext, value: Any) -> bool:
        # a cron's run has no user, so it would be the public principal's
        return False

    @auth.on.threads
    async def own_threads(ctx: Auth.types.AuthContext, value: Any) -> dict[str, str]:
        owner = owner_of_user(ctx.user)
        if ctx.action in WRITES:
            if value.get("metadata") is None:
                value["metadata"] = {}
            value["metadata"][OWNER_KEY] = owner  # in place: the server reads its own dict, not what stands here then
        return {OWNER_KEY: owner}

    @auth.on.assistants
    async def read_assistants(ctx: Auth.types.AuthContext, value: Any) -> bool:
        # the server's own, one for each graph; an assistant's config would be everybody's
        return ctx.action in SHOWN_ASSISTANTS

    @auth.on.store
    async def own_namespace(ctx: Auth.types.AuthContext, value: Any) -> None:
        label = hashlib.sha256(owner_of_user(ctx.user).encode()).hexdigest()[:32]
        inside = tuple(value.get("namespace") or ())
        value["namespace"] = inside if inside[:1] == (label,) else (label, *inside)

    return auth


def user_from(principal: Principal) -> Auth.types.MinimalUserDict:
    """The server's user for the principal; `graph.loop.principal_of` reads it back."""
    user: dict[str, Any] = {"identity": principal.user, "is_authenticated": True}
    user |= {"tenant": principal.tenant, "groups": list(principal.groups)}  # the server passes on what its type lacks
    return cast(Auth.types.MinimalUserDict, user)


def owner_of_user(user: Any) -> str:
    """Whose a thread is that this user begins."""
    return owner_of(principal_of(user))
