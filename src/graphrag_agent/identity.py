"""Who is asking. The principal comes from the server or from `acting_as`, never from what a client sends."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

DEFAULT_TENANT = "default"


@dataclass(frozen=True, slots=True)
class Principal:
    """The identity whose permissions a turn has."""

    tenant: str = DEFAULT_TENANT
    user: str = "public"
    groups: tuple[str, ...] = ()


PUBLIC = Principal()
"""The principal where nobody is named: the default tenant, no groups."""

_acting: ContextVar[Principal] = ContextVar("graphrag_agent_principal", default=PUBLIC)


@contextmanager
def acting_as(principal: Principal) -> Iterator[Principal]:
    """Everything called inside runs as this principal, tasks and threads that it starts included."""
    token = _acting.set(principal)
    try:
        yield principal
    finally:
        _acting.reset(token)


def acting_principal() -> Principal:
    """The principal of the surrounding `acting_as`, else the public one."""
    return _acting.get()


OWNER_KEY = "graphrag_owner"
"""Under this name a checkpoint's metadata says whose thread it is; the agent writes it, never a client."""


def owner_of(principal: Principal) -> str:
    """Whose a thread is that this principal begins: tenant and user as JSON. Groups change; threads stay."""
    return json.dumps([principal.tenant, principal.user], ensure_ascii=False)


PUBLIC_OWNER = owner_of(PUBLIC)
"""Also the owner of threads whose metadata names none."""
